"""Train a network on small images, on all chips of a TPU, or on XLA's CPU devices."""

import argparse
import os
import sys
import tempfile
import time
import warnings

os.environ.setdefault("USER", f"user-{os.getuid()}")  # torch needs one, also in a container

import torch
import torch.nn.functional as F
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.runtime as xr
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
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


# YOUR DATA, 2 of 3: pairs (input, target) to train on and to validate. `limit` is --images.
def load_data(limit):
    from course_lessons.data.images import load_images

    images = load_images(download=False)  # True gets CIFAR-10 instead of drawn images
    data = TensorDataset(images.train[:limit], images.train_labels[:limit])
    held_out = max(1, len(data) // 10)
    seed = torch.Generator().manual_seed(0)  # shuffled: data may be sorted by class
    return random_split(data, [len(data) - held_out, held_out], seed)


# Turns a list of samples into a batch (inputs, targets). Write your own to pad sentences.
collate = torch.utils.data.default_collate


# YOUR LOSS AND METRIC, 3 of 3: these are for classes. Each is a mean over the batch.
def compute_loss(scores, labels):
    if labels.is_floating_point():
        raise TypeError("The targets are not class numbers: write a loss for them here.")
    return F.cross_entropy(scores, labels)


def measure(scores, labels):
    return (scores.argmax(1) == labels).float().mean()


METRIC = "accuracy {:.1%}"  # shows the mean of all samples


def move(batch, device, **how):
    """Copy a tensor, or all tensors in a list, tuple or dict, to the device."""
    if isinstance(batch, dict):
        return {key: move(each, device, **how) for key, each in batch.items()}
    if isinstance(batch, (list, tuple)):
        make = getattr(batch, "_make", type(batch))  # the first for a named tuple
        return make(move(each, device, **how) for each in batch)
    return to_devices(batch, device, **how) if torch.is_tensor(batch) else batch


def to_devices(batch, device, mesh):
    batch = batch.to(device)
    if batch.ndim and len(batch) % mesh.size() == 0:  # each gets its share, or else all
        mark_sharding(batch, mesh, ("data", *[None] * (batch.ndim - 1)))
    return batch


def validate(outputs, targets, count):
    """Return the loss and the metric of a batch of `count` samples, times `count`."""
    loss = compute_loss(outputs, targets)
    means = torch.as_tensor(measure(outputs, targets), device=loss.device).float()
    if means.numel() not in (1, count):
        raise ValueError(f"measure gives numbers of shape {list(means.shape)}, not a mean")
    return count * torch.stack([loss.float(), means.mean()])


# KEEP THE CHECKPOINT SAFE: skip these functions at first.
def find_checkpoint(path, resume, parts):
    """Return the checkpoint to continue, once its parts have taken their state, or None."""
    folder = os.path.dirname(os.path.abspath(path))
    try:
        os.makedirs(folder, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()  # fails here, not after an epoch
    except OSError as error:
        sys.exit(f"--checkpoint {path!r} cannot be written: {error}. Choose another.")
    if os.path.exists(path) and resume:
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)  # any device
            if not state.keys() >= {"epochs", "network", "best", "optimizer", "scheduler"}:
                raise ValueError("a part is missing")
            for name, part in parts.items():
                part.load_state_dict(state[name])  # fails if the network was edited
            optimizer = parts["optimizer"]  # whose groups are the checkpoint's now
            if optimizer.defaults.keys() - optimizer.param_groups[0].keys():
                raise ValueError("of another optimizer")
            return state
        except Exception as error:  # torch raises many kinds for torn and foreign files
            why = f"is not a whole checkpoint of this script ({error!r:.80})"
            sys.exit(f"{path} {why}: omit --resume")


def save_checkpoint(state, path):
    new = f"{path}.{os.getpid()}.new"
    try:
        xm.save(state, new)
        if state["epochs"] == 1 and os.path.exists(path):  # a new run's first
            old = f"{path}.{time.strftime('%Y-%m-%d-%H%M%S')}-{os.getpid()}"
            os.replace(path, old)
            print(f"the previous run's checkpoint is now {old}")
        os.replace(new, path)  # whole or not at all, on a local disk
    except (OSError, RuntimeError) as error:  # the second by torch: a full disk
        sys.exit(f"{path} cannot be saved; is the disk full? ({error!r:.80})")
    finally:
        if os.path.exists(new):
            os.remove(new)


def read_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--lr", type=float, default=1e-3, help="learning rate")
    parser.add_argument("--images", type=int, default=50_000, help="use at most this many")
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--resume", action="store_true", help="continue it, if it is there")
    parser.add_argument("--bits", type=int, choices=(16, 32), help="16 by default on a TPU")
    parser.add_argument("--cache", default="xla_cache", help="folder of compiled programs")
    args = parser.parse_args()
    if min(args.epochs, args.batch, args.images - 1) < 1 or not 0 < args.lr < 1000:
        parser.error("--epochs and --batch start at 1, --images at 2, and --lr above 0")
    there = os.path.exists(args.checkpoint) and not os.path.isfile(args.checkpoint)
    if there or not os.path.basename(args.checkpoint):
        parser.error(f"--checkpoint {args.checkpoint!r} does not name a file")
    return args


def main():
    args = read_arguments()
    warnings.filterwarnings("error", "Using a target size")  # (n, 1) against (n,)

    if xr.device_type() == "TPU":  # the CPU compiler has no such cache
        xr.initialize_cache(args.cache)
    xr.use_spmd()  # one program for all devices
    device, devices = torch_xla.device(), xr.global_runtime_device_count()
    mesh = get_1d_mesh("data")  # all devices along one axis, which has a name
    print(f"on {device}: {xr.device_type()}, devices: {devices}")
    bits = args.bits or (16 if xr.device_type() == "TPU" else 32)
    autocast = torch.autocast("xla", torch.bfloat16, enabled=bits == 16)

    torch.manual_seed(0)
    network = Network().to(device)  # before the optimizer, which keeps its parameters
    optimizer = torch.optim.AdamW(network.parameters(), args.lr, weight_decay=0.01)
    scheduler = ReduceLROnPlateau(optimizer, factor=0.1, patience=2, threshold=0)

    train, valid = load_data(args.images)
    batch = min(args.batch, len(train))
    batch = batch // devices * devices or batch
    sampler = RandomSampler(train, generator=torch.Generator())
    config = {"batch_size": batch, "collate_fn": collate}
    train_loader = DataLoader(train, sampler=sampler, drop_last=True, **config)
    valid_loader = DataLoader(valid, **config)

    start_epoch, best = 0, None
    parts = {"network": network, "optimizer": optimizer, "scheduler": scheduler}
    if state := find_checkpoint(args.checkpoint, args.resume, parts):
        start_epoch, best = state["epochs"], state["best"]
    lr = optimizer.param_groups[0]["lr"]
    print(f"{args.checkpoint}: {start_epoch} of {args.epochs} epochs done, lr {lr}")

    for epoch in range(start_epoch, args.epochs):
        start = time.perf_counter()
        torch.manual_seed(epoch)  # so that a resumed run draws the same numbers
        sampler.generator.manual_seed(epoch)
        torch_xla.manual_seed(epoch)
        losses, sums, left = [], [], len(valid)  # adding up on the device: more programs
        network.train()  # dropout and batch normalization as they are in training
        for inputs, targets in train_loader:
            inputs, targets = move((inputs, targets), device, mesh=mesh)
            with autocast:
                loss = compute_loss(network(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.detach())
            torch_xla.sync()  # compiles what was recorded, or reuses it, and runs it
        network.eval()  # and now as they are at inference
        with torch.no_grad(), autocast:
            for inputs, targets in valid_loader:
                inputs, targets = move((inputs, targets), device, mesh=mesh)
                sums.append(validate(network(inputs), targets, min(batch, left)))
                left -= batch
                torch_xla.sync()
        sums = torch.stack([each.cpu() for each in sums]).sum(0)
        valid_loss, mean = (sums / len(valid)).tolist()

        scheduler.step(valid_loss)  # a smaller lr after three epochs without progress
        weights = network.state_dict()
        if valid_loss == scheduler.best:  # the lowest so far
            best = {name: each.to("cpu", copy=True) for name, each in weights.items()}
        state = {"epochs": epoch + 1, "network": weights, "best": best}
        state |= {"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}
        save_checkpoint(state, args.checkpoint)
        loss = sum(map(float, losses)) / len(losses)
        result = f"epoch {epoch + 1}  loss {loss:.4f}  {METRIC.format(mean)}"
        print(f"{result}  {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
