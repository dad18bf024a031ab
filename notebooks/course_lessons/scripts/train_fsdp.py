"""Train a network on small images: each process holds a part of the network.

Start or continue it with: torchrun --standalone --nproc-per-node 2 train_fsdp.py --resume
"""

import argparse
import math
import os
import sys
import time
from contextlib import suppress

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.checkpoint import state_dict as states
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset, random_split


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
        torch.save(state, path + ".new")
        os.replace(path + ".new", path)  # whole or not at all
    finally:
        if os.path.exists(path + ".new"):  # the disk may be full
            os.remove(path + ".new")


def refuse(reason):
    sys.exit(reason if os.environ["RANK"] == "0" else 0)  # one of the ranks says it


def shard(network):
    """Split the weights of each layer between the ranks, inner layers before outer ones."""
    for module in reversed(list(network.modules())):
        for layer in module if isinstance(module, (nn.Sequential, nn.ModuleList)) else ():
            if [*layer.parameters()] and not isinstance(layer, (FSDPModule, nn.ModuleList)):
                fully_shard(layer)
    fully_shard(network)  # what is left


def main():
    if "RANK" not in os.environ:
        sys.exit("start it with: torchrun --standalone --nproc-per-node 2 train_fsdp.py")
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    parser = argparse.ArgumentParser()
    parser.error = refuse
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--lr", type=float, default=1e-3, help="learning rate")
    parser.add_argument("--images", type=int, default=50_000, help="use at most so many")
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--resume", action="store_true", help="continue it, if it is there")
    has_gpu = torch.accelerator.is_available()
    best = str(torch.accelerator.current_accelerator()) if has_gpu else "cpu"
    parser.add_argument("--device", choices={"cpu", best}, default=best)
    parser.add_argument("--bits", type=int, choices=(16, 32), help="16 by default on a GPU")
    parser.add_argument("--workers", type=int, default=0, help="processes that load data")
    parser.add_argument("--compile", action="store_true", help="a slow start, then faster")
    args = parser.parse_args()
    whole = args.epochs, args.batch, args.images - 1, args.workers + 1
    if min(whole) < 1 or not 0 < args.lr < 1000:
        parser.error("--epochs, --batch start at 1, --images at 2, --workers, --lr above 0")
    if os.path.isdir(args.checkpoint):
        parser.error(f"--checkpoint {args.checkpoint} is a folder: name a file in it")

    device = torch.device(args.device)
    backend = {"cpu": "gloo", "cuda": "nccl", "xpu": "xccl"}.get(device.type)
    if backend is None:
        refuse(f"ranks cannot exchange gradients on {device.type}: add --device cpu")
    if device.type != "cpu":  # each rank of a machine has a GPU of its own
        device = torch.device(device.type, int(os.environ["LOCAL_RANK"]))
        torch.accelerator.set_device_index(device.index)
    dist.init_process_group(backend)
    get_name = getattr(torch.get_device_module(device), "get_device_name", str)
    print(f"rank {rank} on {device}: {get_name(device)}")
    on_cuda = device.type == "cuda"
    old_gpu = on_cuda and torch.cuda.get_device_capability(device) < (8, 0)  # such as a T4
    half = torch.float16 if old_gpu else torch.bfloat16
    bits = args.bits or (32 if device.type == "cpu" else 16)  # 16 slow many CPUs down
    autocast = torch.autocast(device.type, half, enabled=bits == 16)
    scaler = torch.amp.GradScaler(device.type, enabled=bits == 16 and old_gpu)

    torch.manual_seed(0)
    network = Network().to(device)  # before the optimizer, which keeps its parameters
    if args.compile:
        network.compile()
    shard(network)
    optimizer = torch.optim.Adam(network.parameters(), lr=args.lr)

    train, valid = load_data(args.images)
    batch = min(args.batch, len(train))
    if batch < ranks:
        refuse(f"a batch of {batch} is less than one sample for each of {ranks} ranks")
    sampler = DistributedSampler(train)  # gives each rank its share of the same order
    valid_sampler = range(rank, len(valid), ranks)  # each sample once
    valid_steps = math.ceil(len(valid) / ranks / (batch // ranks))  # of the largest share
    config = {
        "batch_size": batch // ranks,
        "num_workers": args.workers,
        "persistent_workers": args.workers > 0,
        "pin_memory": on_cuda,  # which makes non_blocking copies safe, and faster
        "generator": torch.Generator().manual_seed(rank),  # apart from the one of dropout
    }
    train_loader = DataLoader(train, sampler=sampler, drop_last=True, **config)
    valid_loader = DataLoader(valid, sampler=valid_sampler, **config)

    start_epoch = 0
    found = [find_checkpoint(args.checkpoint, args.resume) if rank == 0 else None]
    dist.broadcast_object_list(found)  # the other ranks may be on other machines
    full = states.StateDictOptions(full_state_dict=True, cpu_offload=True)
    if state := found[0]:
        weights, moments = state["network"], state["optimizer"]
        states.set_model_state_dict(network, weights, options=full)
        states.set_optimizer_state_dict(network, optimizer, moments, options=full)
        if state.get("scaler"):
            scaler.load_state_dict(state["scaler"])
        start_epoch = state["epochs"]
    lr = optimizer.param_groups[0]["lr"]
    if rank == 0:
        print(f"{args.checkpoint}: {start_epoch} of {args.epochs} epochs done, lr {lr}")

    for epoch in range(start_epoch, args.epochs):
        start = time.perf_counter()
        torch.manual_seed(epoch * ranks + rank)  # each rank draws its own
        sampler.set_epoch(epoch)
        loss_sum, measure_sum = 0.0, 0.0
        network.train()
        for inputs, targets in train_loader:
            inputs = inputs.to(device, non_blocking=on_cuda)
            targets = targets.to(device, non_blocking=on_cuda)
            optimizer.zero_grad()
            parts = inputs.chunk(2), targets.chunk(2)  # for less memory in a step
            for part, part_targets in zip(*parts, strict=True):
                with autocast:
                    loss = compute_loss(network(part), part_targets)
                loss *= len(part) / len(inputs)  # parts may differ by one sample
                scaler.scale(loss).backward()  # adds to the gradients
                loss_sum += loss.detach()
            scaler.step(optimizer)
            scaler.update()
        network.eval()
        with torch.no_grad(), autocast:
            for inputs, targets in valid_loader:
                inputs, targets = inputs.to(device), targets.to(device)
                measure_sum += measure(network(inputs), targets)
            for _ in range(len(valid_loader), valid_steps):
                network(inputs)  # all ranks compute as often, and none waits for another
        sums = torch.tensor([float(loss_sum) / ranks, float(measure_sum)], device=device)
        dist.all_reduce(sums)
        loss_sum, measure_sum = sums.tolist()
        weights, moments = states.get_state_dict(network, optimizer, options=full)
        if rank > 0:
            continue  # one rank saves and prints

        state = {"epochs": epoch + 1, "network": weights}
        state |= {"optimizer": moments, "scaler": scaler.state_dict()}
        save_checkpoint(state, args.checkpoint)
        loss, mean = loss_sum / len(train_loader), measure_sum / len(valid)
        result = f"epoch {epoch + 1}  loss {loss:.4f}  {MEASURE.format(mean)}"
        print(f"{result}  {time.perf_counter() - start:.1f} s", flush=True)
    dist.destroy_process_group()
    if on_cuda and rank == 0:
        print(f"peak memory {torch.cuda.max_memory_allocated(device) / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
