"""Train a network on small images, in plain PyTorch on the CPU."""

import argparse
import os
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

from course_lessons.data.images import load_images


# YOUR DATA, 1 of 2: return two data sets of (input, label), to train on and to validate.
def load_data(count):
    images = load_images(download=False)  # True gets CIFAR-10 instead of drawn images
    data = TensorDataset(images.train[:count], images.train_labels[:count])
    held_out = max(1, len(data) // 10)
    return TensorDataset(*data[held_out:]), TensorDataset(*data[:held_out])


# YOUR NETWORK, 2 of 2: any module that gives a score for each class.
class Network(nn.Module):
    def __init__(self):
        super().__init__()
        blocks = block(3, 32), block(32, 64), block(64, 128)
        self.layers = nn.Sequential(*blocks, nn.Flatten(), nn.Linear(128 * 4 * 4, 10))

    def forward(self, pixels):
        return self.layers(pixels.float() / 127.5 - 1)  # 0 to 255 becomes -1 to 1


def block(inputs, outputs):
    convolution = nn.Conv2d(inputs, outputs, kernel_size=3, padding=1)
    return nn.Sequential(convolution, nn.MaxPool2d(2), nn.ReLU())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--lr", type=float, default=1e-3, help="learning rate")
    parser.add_argument("--images", type=int, help="use only so many images")
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--resume", action="store_true", help="continue the checkpoint")
    args = parser.parse_args()

    torch.manual_seed(0)
    network = Network()
    optimizer = torch.optim.Adam(network.parameters(), lr=args.lr)

    train, valid = load_data(args.images)
    order = RandomSampler(train, generator=torch.Generator())
    feed = {"batch_size": min(args.batch, len(train))}
    train_loader = DataLoader(train, sampler=order, drop_last=True, **feed)
    valid_loader = DataLoader(valid, **feed)

    done = 0
    if args.resume:
        state = torch.load(args.checkpoint, map_location="cpu")  # from any device
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        done = state["epochs"]

    for epoch in range(done, args.epochs):
        start = time.perf_counter()
        torch.manual_seed(epoch)  # so that a resumed training draws the same numbers
        order.generator.manual_seed(epoch)
        network.train()
        total, right = 0.0, 0
        for pixels, labels in train_loader:
            loss = F.cross_entropy(network(pixels), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        network.eval()
        with torch.no_grad():
            for pixels, labels in valid_loader:
                right += (network(pixels).argmax(1) == labels).sum()

        state = {"epochs": epoch + 1, "network": network.state_dict()}
        state["optimizer"] = optimizer.state_dict()
        torch.save(state, args.checkpoint + ".new")
        os.replace(args.checkpoint + ".new", args.checkpoint)  # whole or not at all
        loss, accuracy = float(total) / len(train_loader), float(right) / len(valid)
        result = f"epoch {epoch + 1}  loss {loss:.4f}  accuracy {accuracy:.1%}"
        print(f"{result}  {time.perf_counter() - start:.1f} s", flush=True)
