"""Train a network on small images: each process holds a part of the network.

Start it with: torchrun --nproc-per-node 2 FILE
"""

import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.checkpoint import state_dict as states
from torch.distributed.fsdp import fully_shard
from torch.utils.checkpoint import checkpoint_sequential
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

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
        pixels = pixels.float() / 127.5 - 1  # 0 to 255 becomes -1 to 1
        # Keep only what goes into each layer, and compute the rest again when needed.
        return checkpoint_sequential(self.layers, 5, pixels, use_reentrant=False)


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
    best = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", type=torch.device, default=best)
    parser.add_argument("--fp32", action="store_true", help="32 bits where 16 would do")
    args = parser.parse_args()
    parts = 2  # of a step, whose gradients are added

    device = args.device
    on_gpu = device.type == "cuda"
    if on_gpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))  # torchrun numbers them
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    old_gpu = on_gpu and torch.cuda.get_device_capability(device) < (8, 0)  # as the T4
    half = torch.float16 if old_gpu else torch.bfloat16
    autocast = torch.autocast(device.type, half, enabled=not args.fp32)
    scaler = torch.amp.GradScaler(device.type, enabled=old_gpu)

    torch.manual_seed(0)
    network = Network().to(device)
    for module in [*network.layers[:3], network]:
        fully_shard(module)  # each rank keeps 1 / ranks of its weights
    optimizer = torch.optim.Adam(network.parameters(), lr=args.lr)

    train, valid = load_data(args.images)
    order = DistributedSampler(train)  # gives each rank its share of the same order
    valid_order = DistributedSampler(valid, shuffle=False)  # as many on each rank
    feed = {"batch_size": min(args.batch, len(train)) // ranks}
    feed |= {"num_workers": 2, "persistent_workers": True, "pin_memory": on_gpu}
    train_loader = DataLoader(train, sampler=order, drop_last=True, **feed)
    valid_loader = DataLoader(valid, sampler=valid_order, **feed)

    # A checkpoint holds whole tensors, gathered from all ranks.
    whole = states.StateDictOptions(full_state_dict=True, cpu_offload=True)
    done = 0
    if args.resume:
        state = torch.load(args.checkpoint, map_location="cpu")  # from any device
        weights, moments = state["network"], state["optimizer"]
        states.set_model_state_dict(network, weights, options=whole)
        states.set_optimizer_state_dict(network, optimizer, moments, options=whole)
        scaler.load_state_dict(state.get("scaler") or scaler.state_dict())
        done = state["epochs"]

    for epoch in range(done, args.epochs):
        start = time.perf_counter()
        torch.manual_seed(epoch * ranks + rank)  # each rank draws numbers of its own
        order.set_epoch(epoch)
        network.train()
        total, right = 0.0, 0
        for pixels, labels in train_loader:
            pixels = pixels.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            optimizer.zero_grad()
            pixel_parts, label_parts = pixels.chunk(parts), labels.chunk(parts)
            for part in range(parts):
                with autocast:
                    scores = network(pixel_parts[part])
                    loss = F.cross_entropy(scores, label_parts[part]) / parts
                scaler.scale(loss).backward()  # adds to the gradients
                total += loss.detach()
            scaler.step(optimizer)
            scaler.update()
        network.eval()
        with torch.no_grad(), autocast:
            for pixels, labels in valid_loader:
                pixels, labels = pixels.to(device), labels.to(device)
                right += (network(pixels).argmax(1) == labels).sum()
        sums = torch.tensor([float(total) / ranks, float(right)], device=device)
        dist.all_reduce(sums)
        total, right = sums.tolist()
        weights, moments = states.get_state_dict(network, optimizer, options=whole)
        if rank > 0:
            continue  # one rank saves and prints

        state = {"epochs": epoch + 1, "network": weights}
        state["optimizer"] = moments
        state["scaler"] = scaler.state_dict()
        torch.save(state, args.checkpoint + ".new")
        os.replace(args.checkpoint + ".new", args.checkpoint)  # whole or not at all
        loss, accuracy = total / len(train_loader), right / valid_order.total_size
        result = f"epoch {epoch + 1}  loss {loss:.4f}  accuracy {accuracy:.1%}"
        print(f"{result}  {time.perf_counter() - start:.1f} s", flush=True)
    dist.destroy_process_group()
    if on_gpu and rank == 0:
        print(f"peak memory {torch.cuda.max_memory_allocated(device) / 1e9:.2f} GB")
