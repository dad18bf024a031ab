"""Train a network on small images, on all chips of a TPU, or on XLA's CPU devices."""

import argparse
import os
import sys
import time
from contextlib import suppress

import torch
import torch.nn.functional as F
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.runtime as xr
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset, random_split
from torch_xla.distributed.spmd import get_1d_mesh, mark_sharding


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


def find_checkpoint(path, resume):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    if os.path.exists(path) and resume:
        with suppress(Exception):  # what torch raises of a torn or foreign file
            state = torch.load(path, map_location="cpu", weights_only=True)  # any device
            if state.keys() >= {"epochs", "network", "optimizer"}:
                return state
        sys.exit(f"{path} is not a whole checkpoint of this script: omit --resume")
    if os.path.exists(path):
        kept = f"{path}.{os.path.getmtime(path):.0f}"
        os.replace(path, kept)
        print(f"without --resume this is a new run; the last checkpoint is now {kept}")


def save_checkpoint(state, path):
    try:
        xm.save(state, path + ".new")
        os.replace(path + ".new", path)  # whole or not at all
    finally:
        if os.path.exists(path + ".new"):  # the disk may be full
            os.remove(path + ".new")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--lr", type=float, default=1e-3, help="learning rate")
    parser.add_argument("--images", type=int, default=50_000, help="use at most so many")
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--resume", action="store_true", help="continue it, if it is there")
    parser.add_argument("--bits", type=int, choices=(16, 32), help="16 by default on a TPU")
    parser.add_argument("--cache", default="xla_cache", help="folder of compiled programs")
    args = parser.parse_args()
    if min(args.epochs, args.batch, args.images - 1) < 1 or not 0 < args.lr < 1000:
        parser.error("--epochs and --batch start at 1, --images at 2, and --lr above 0")
    if os.path.isdir(args.checkpoint):
        parser.error(f"--checkpoint {args.checkpoint} is a folder: name a file in it")

    if xr.device_type() == "TPU":  # the CPU compiler has no such cache
        xr.initialize_cache(args.cache)
    xr.use_spmd()  # one program for all devices
    device, devices = torch_xla.device(), xr.global_runtime_device_count()
    mesh = get_1d_mesh("data")  # all devices along one axis, which has a name
    print(f"on {device}: {xr.device_type()}, devices: {devices}")
    bits = args.bits or (16 if xr.device_type() == "TPU" else 32)
    autocast = torch.autocast("xla", torch.bfloat16, enabled=bits == 16)

    def to_devices(batch):
        batch = batch.to(device)
        if len(batch) % devices == 0:  # each gets its share; else each gets all
            mark_sharding(batch, mesh, ("data", *[None] * (batch.ndim - 1)))
        return batch

    torch.manual_seed(0)
    network = Network().to(device)  # before the optimizer, which keeps its parameters
    optimizer = torch.optim.Adam(network.parameters(), lr=args.lr)

    train, valid = load_data(args.images)
    batch = min(args.batch, len(train))
    batch = batch // devices * devices or batch
    sampler = RandomSampler(train, generator=torch.Generator())
    train_loader = DataLoader(train, batch, sampler=sampler, drop_last=True)
    valid_loader = DataLoader(valid, batch)

    start_epoch = 0
    if state := find_checkpoint(args.checkpoint, args.resume):
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])  # with its learning rate
        start_epoch = state["epochs"]
    lr = optimizer.param_groups[0]["lr"]
    print(f"{args.checkpoint}: {start_epoch} of {args.epochs} epochs done, lr {lr}")

    for epoch in range(start_epoch, args.epochs):
        start = time.perf_counter()
        torch.manual_seed(epoch)  # so that a resumed run draws the same numbers
        sampler.generator.manual_seed(epoch)
        torch_xla.manual_seed(epoch)
        losses, measures = [], []  # a sum on the device would be one more program
        network.train()
        for inputs, targets in train_loader:
            inputs, targets = to_devices(inputs), to_devices(targets)
            with autocast:
                loss = compute_loss(network(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
            torch_xla.sync()  # compiles what was recorded, or reuses it, and runs it
        network.eval()
        with torch.no_grad(), autocast:
            for inputs, targets in valid_loader:
                inputs, targets = to_devices(inputs), to_devices(targets)
                measures.append(measure(network(inputs), targets))
                torch_xla.sync()

        state = {"epochs": epoch + 1, "network": network.state_dict()}
        state["optimizer"] = optimizer.state_dict()
        save_checkpoint(state, args.checkpoint)
        loss = sum(map(float, losses)) / len(losses)
        mean = sum(map(float, measures)) / len(valid)
        result = f"epoch {epoch + 1}  loss {loss:.4f}  {MEASURE.format(mean)}"
        print(f"{result}  {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
