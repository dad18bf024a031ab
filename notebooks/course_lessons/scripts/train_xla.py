"""Train a network on small images, in plain PyTorch on a TPU, or on XLA's CPU compiler."""

import argparse
import os
import time

import torch
import torch.nn.functional as F
import torch_xla
import torch_xla.core.xla_model as xm
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset, random_split


# YOUR NETWORK, 1 of 3.
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


# YOUR DATA, 2 of 3: two data sets of pairs (input, target), to train on and to validate.
def load_data(limit):
    from course_lessons.data.images import load_images

    images = load_images(download=False)  # True gets CIFAR-10 instead of drawn images
    data = TensorDataset(images.train[:limit], images.train_labels[:limit])
    held_out = max(1, len(data) // 10)
    seed = torch.Generator().manual_seed(0)  # shuffled: data may be sorted by class
    return random_split(data, [len(data) - held_out, held_out], seed)


# YOUR LOSS AND MEASURE, 3 of 3: these are for classes. A measure is the sum over a batch.
def compute_loss(scores, labels):
    if labels.is_floating_point():
        raise TypeError("The targets are not class numbers: write their own loss here.")
    return F.cross_entropy(scores, labels)


def measure(scores, labels):
    return (scores.argmax(1) == labels).sum()


MEASURE = "accuracy {:.1%}"  # shows the mean of all samples


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--lr", type=float, default=1e-3, help="learning rate")
    parser.add_argument("--images", type=int, default=50_000, help="use at most so many")
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--resume", action="store_true", help="continue the checkpoint")
    parser.add_argument("--fp32", action="store_true", help="32 bits where 16 would do")
    args = parser.parse_args()

    device = torch_xla.device()  # PJRT_DEVICE says which: TPU or CPU
    autocast = torch.autocast("xla", torch.bfloat16, enabled=not args.fp32)

    torch.manual_seed(0)
    network = Network().to(device)  # before the optimizer, which keeps its parameters
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
        torch_xla.manual_seed(epoch)
        order.generator.manual_seed(epoch)
        network.train()
        total, right = 0.0, 0
        for pixels, labels in train_loader:
            pixels, labels = pixels.to(device), labels.to(device)
            with autocast:
                loss = compute_loss(network(pixels), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
            torch_xla.sync()  # compiles what was recorded, or reuses it, and runs it
        network.eval()
        with torch.no_grad(), autocast:
            for pixels, labels in valid_loader:
                pixels, labels = pixels.to(device), labels.to(device)
                right += measure(network(pixels), labels)
                torch_xla.sync()

        state = {"epochs": epoch + 1, "network": network.state_dict()}
        state["optimizer"] = optimizer.state_dict()
        xm.save(state, args.checkpoint + ".new")
        os.replace(args.checkpoint + ".new", args.checkpoint)  # whole or not at all
        loss, accuracy = float(total) / len(train_loader), float(right) / len(valid)
        result = f"epoch {epoch + 1}  loss {loss:.4f}  {MEASURE.format(accuracy)}"
        print(f"{result}  {time.perf_counter() - start:.1f} s", flush=True)
