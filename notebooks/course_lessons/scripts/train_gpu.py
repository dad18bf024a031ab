"""Train a network on small images, in plain PyTorch on a GPU where there is one."""

import argparse
import os
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

from course_utils.data.images import load_images


# YOUR DATA, 1 of 2: return two data sets of (input, label), to train on and to validate.
def load_data(count):
    images = load_images(download=False)  # True gets CIFAR-10 instead of drawn images
    pixels, labels = images.train[:count], images.train_labels[:count]
    held_out = len(pixels) // 10
    train = TensorDataset(pixels[held_out:], labels[held_out:])
    return train, TensorDataset(pixels[:held_out], labels[:held_out])


def block(inputs, outputs):
    convolution = nn.Conv2d(inputs, outputs, kernel_size=3, padding=1)
    return nn.Sequential(convolution, nn.MaxPool2d(2), nn.ReLU())


# YOUR NETWORK, 2 of 2: any module that gives a score for each class.
class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(block(3, 32), block(32, 64), block(64, 128))
        self.head = nn.Linear(128 * 4 * 4, 10)

    def forward(self, pixels):
        hidden = self.blocks(pixels.float() / 127.5 - 1)  # 0 to 255 becomes -1 to 1
        return self.head(hidden.flatten(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--images", type=int, help="use only so many images")
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--resume", action="store_true", help="continue the checkpoint")
    best = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", type=torch.device, default=best)
    parser.add_argument("--precision", choices=["bf16", "fp16", "fp32"])
    args = parser.parse_args()

    device = args.device
    on_gpu = device.type == "cuda"
    has_bf16 = not on_gpu or torch.cuda.get_device_capability(device) >= (8, 0)
    precision = args.precision or ("bf16" if has_bf16 else "fp16")
    half = torch.float16 if precision == "fp16" else torch.bfloat16
    autocast = torch.autocast(device.type, half, enabled=precision != "fp32")
    scaler = torch.amp.GradScaler(device.type, enabled=precision == "fp16")

    torch.manual_seed(0)
    network = Network().to(device)  # before the optimizer, which keeps its parameters
    optimizer = torch.optim.Adam(network.parameters(), args.lr)

    train, valid = load_data(args.images)
    generator = torch.Generator()
    order = RandomSampler(train, generator=generator)
    feed = {"num_workers": 2, "persistent_workers": True, "pin_memory": on_gpu}
    train_loader = DataLoader(train, args.batch, sampler=order, drop_last=True, **feed)
    valid_loader = DataLoader(valid, args.batch, **feed)

    done = 0
    if args.resume:
        state = torch.load(args.checkpoint, map_location="cpu")  # from any device
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        if scaler.is_enabled() and state.get("scaler"):
            scaler.load_state_dict(state["scaler"])
        done = state["epochs"]

    for epoch in range(done, args.epochs):
        start = time.perf_counter()
        torch.manual_seed(epoch)  # so that a resumed training draws the same numbers
        generator.manual_seed(epoch)
        network.train()
        total = 0.0
        for pixels, labels in train_loader:
            pixels = pixels.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            with autocast:
                loss = F.cross_entropy(network(pixels), labels)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            total += loss.detach()
        network.eval()
        right = 0
        with torch.no_grad(), autocast:
            for pixels, labels in valid_loader:
                pixels, labels = pixels.to(device), labels.to(device)
                right += (network(pixels).argmax(1) == labels).sum()
        loss, accuracy = float(total) / len(train_loader), float(right) / len(valid)

        state = {
            "network": network.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scaler": scaler.state_dict(),
            "epochs": epoch + 1,
        }
        torch.save(state, args.checkpoint + ".new")
        os.replace(args.checkpoint + ".new", args.checkpoint)  # whole or not at all
        result = f"loss {loss:.4f}  accuracy {accuracy:.1%}"
        seconds = time.perf_counter() - start
        print(f"epoch {epoch + 1}  {result}  {seconds:.1f} s", flush=True)
    if on_gpu:
        print(f"peak memory {torch.cuda.max_memory_allocated(device) / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
