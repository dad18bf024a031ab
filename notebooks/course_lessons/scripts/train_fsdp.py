"""Train a network on small images: each process holds a part of the network.

Start or continue it: torchrun --standalone --nproc-per-node 2 train_fsdp.py --resume"""

import argparse
import math
import os
import sys
import tempfile
import time
import warnings
from collections import Counter
from itertools import islice

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.checkpoint import state_dict as states
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.optim.lr_scheduler import ReduceLROnPlateau
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
    return batch.to(device, **how) if hasattr(batch, "to") else batch


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
            return state
        except Exception as error:  # torch raises many kinds for torn and foreign files
            why = f"is not a whole checkpoint of this script ({error!r:.80})"
            sys.exit(f"{path} {why}: omit --resume")


def save_checkpoint(state, path):
    new = f"{path}.{os.getpid()}.new"
    try:
        torch.save(state, new)
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


def refuse(reason):
    sys.exit(reason if os.environ.get("RANK", "0") == "0" else 0)  # only rank 0 says it


def shard(network, mesh, half):
    """Split the weights of each layer between the ranks, inner layers before outer ones.

    A layer is what the network holds, or a list in it. Weights that several layers use are
    left to the network as a whole.
    """
    layers = [*network.children()]
    for module in network.modules():
        if isinstance(module, (nn.Sequential, nn.ModuleList, nn.ModuleDict)):
            layers += module.children()
        elif hasattr(module, "running_mean"):
            layers.append(module)  # batch normalization keeps its 32 bits
    uses = Counter(each for _, each in network.named_parameters(remove_duplicate=False))
    inner, exact = MixedPrecisionPolicy(half, torch.float32), MixedPrecisionPolicy()
    for layer in reversed(layers):
        runs = type(layer).forward is not nn.Module.forward  # a list does not
        used = max((uses[each] for each in layer.parameters()), default=2)
        if runs and used < 2 and not isinstance(layer, FSDPModule):
            policy = exact if hasattr(layer, "running_mean") else inner
            fully_shard(layer, mesh=mesh, mp_policy=policy)
    outer = MixedPrecisionPolicy(half, torch.float32, output_dtype=torch.float32)
    fully_shard(network, mesh=mesh, mp_policy=outer)  # what is left


def number_to_name(moments, network, optimizer):
    """Name the parameters in an optimizer's state, where our other scripts number them."""
    names = {weights: name for name, weights in network.named_parameters()}
    order = [names[each] for group in optimizer.param_groups for each in group["params"]]
    name = dict(enumerate(order)) | {each: each for each in order}
    for group in moments["param_groups"]:
        group["params"] = [name[each] for each in group["params"]]
    moments["state"] = {name[each]: values for each, values in moments["state"].items()}
    return moments


def read_arguments():
    parser = argparse.ArgumentParser()
    parser.error = refuse
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--lr", type=float, default=1e-3, help="learning rate")
    parser.add_argument("--images", type=int, default=50_000, help="use at most this many")
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--resume", action="store_true", help="continue it, if it is there")
    has_gpu = torch.accelerator.is_available()
    best = str(torch.accelerator.current_accelerator()) if has_gpu else "cpu"
    parser.add_argument("--device", choices=sorted({"cpu", best}), default=best)
    parser.add_argument("--bits", type=int, choices=(16, 32), help="16 by default on a GPU")
    parser.add_argument("--workers", type=int, default=0, help="processes that load data")
    parser.add_argument("--compile", action="store_true", help="a slow start, then faster")
    parser.add_argument("--parts", type=int, default=1, help="of a batch, for less memory")
    args = parser.parse_args()
    whole = args.epochs, args.batch, args.parts, args.images - 1, args.workers + 1
    if min(whole) < 1 or not 0 < args.lr < 1000:
        least = "--epochs, --batch, --parts start at 1, --images at 2"
        parser.error(f"{least}, --workers at 0, and --lr above 0")
    there = os.path.exists(args.checkpoint) and not os.path.isfile(args.checkpoint)
    if there or not os.path.basename(args.checkpoint):
        parser.error(f"--checkpoint {args.checkpoint!r} does not name a file")
    return args


def main():
    if hasattr(os, "getuid"):  # torch asks for a name; a container may have none
        os.environ.setdefault("USER", f"user-{os.getuid()}")
    args = read_arguments()
    warnings.filterwarnings("error", "Using a target size")  # (n, 1) against (n,)

    if "RANK" not in os.environ:
        sys.exit("start it with: torchrun --standalone --nproc-per-node 2 train_fsdp.py")
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
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
    scaler = torch.amp.GradScaler(device.type, enabled=bits == 16 and old_gpu)

    torch.manual_seed(0)
    network = Network()  # in the host's memory: fully_shard moves only a rank's share
    state = None
    if rank == 0:
        state = find_checkpoint(args.checkpoint, args.resume, {"network": network})
    if args.compile:
        network.compile()
    mesh = dist.init_device_mesh(device.type, (ranks,))
    shard(network, mesh, half if bits == 16 else None)
    optimizer = torch.optim.AdamW(network.parameters(), args.lr, weight_decay=0.01)
    scheduler = ReduceLROnPlateau(optimizer, factor=0.1, patience=2, threshold=0)

    train, valid = load_data(args.images)
    batch = min(args.batch, len(train))
    if batch < ranks * args.parts:
        shares = f"{ranks} ranks and {args.parts} parts"
        refuse(f"a batch of {batch} is less than one sample for each of {shares}")
    batch = batch // ranks // args.parts
    sampler = DistributedSampler(train)  # gives each rank its share of the same order
    share = range(rank, len(valid), ranks)  # to validate: each sample once
    valid_steps = math.ceil(len(valid) / ranks / batch)  # of the largest share
    config = {
        "batch_size": batch,
        "collate_fn": collate,
        "num_workers": args.workers,
        "persistent_workers": args.workers > 0,
        "pin_memory": on_cuda,  # so that the host need not wait for copies
        "generator": torch.Generator().manual_seed(rank),  # separate from dropout
    }
    train_loader = DataLoader(train, sampler=sampler, drop_last=True, **config)
    valid_loader = DataLoader(valid, sampler=share, **config)
    steps = len(train_loader) // args.parts

    start_epoch, best, weights, moments = 0, None, {}, {}
    if state:
        (group, *_) = state["optimizer"]["param_groups"]
        if group.keys() - optimizer.defaults.keys() - {"params", "initial_lr"}:
            sys.exit(f"{args.checkpoint} is of another optimizer: omit --resume")
        weights, best = state.pop("network"), state.pop("best")
        moments = number_to_name(state.pop("optimizer"), network, optimizer)
    small = [state]  # what is left of it
    dist.broadcast_object_list(small)  # the other ranks may be on other machines
    if state := small[0]:
        whole = states.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        states.set_model_state_dict(network, weights, options=whole)  # one by one
        states.set_optimizer_state_dict(network, optimizer, moments, options=whole)
        del weights, moments
        scheduler.load_state_dict(state["scheduler"])
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
        loss_sum, left, sums = 0.0, len(share), torch.zeros(2, device=device)
        network.train()  # dropout and batch normalization as they are in training
        parts = islice(train_loader, steps * args.parts)
        for number, (inputs, targets) in enumerate(parts, 1):
            inputs, targets = move((inputs, targets), device, non_blocking=on_cuda)
            loss = compute_loss(network(inputs), targets) / args.parts
            scaler.scale(loss).backward()  # adds to the gradients
            loss_sum += loss.detach()
            if number % args.parts > 0:
                continue
            scaler.unscale_(optimizer)  # clip the true gradients, not the scaled ones
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        network.eval()  # and now as they are at inference
        with torch.no_grad():
            for inputs, targets in valid_loader:
                inputs, targets = move((inputs, targets), device)
                sums += validate(network(inputs), targets, min(batch, left))
                left -= batch
            for _ in range(len(valid_loader), valid_steps):
                network(inputs)  # all ranks compute as often, and none waits for another
        sums = torch.cat([sums / len(valid), loss_sum.view(1) / steps / ranks])
        dist.all_reduce(sums)  # adds those of all ranks
        valid_loss, mean, loss = sums.tolist()

        scheduler.step(valid_loss)  # a smaller lr after three epochs without progress
        full = states.StateDictOptions(full_state_dict=True, cpu_offload=True)
        weights, moments = states.get_state_dict(network, optimizer, options=full)
        if rank > 0:
            continue  # one rank saves and prints
        if valid_loss == scheduler.best:  # the lowest so far
            best = weights
        state = {"epochs": epoch + 1, "network": weights, "best": best}
        state |= {"optimizer": moments, "scheduler": scheduler.state_dict()}
        state["scaler"] = scaler.state_dict()
        save_checkpoint(state, args.checkpoint)
        result = f"epoch {epoch + 1}  loss {loss:.4f}  {METRIC.format(mean)}"
        print(f"{result}  {time.perf_counter() - start:.1f} s", flush=True)
    dist.destroy_process_group()
    if on_cuda and rank == 0:
        print(f"peak memory {torch.cuda.max_memory_allocated(device) / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
