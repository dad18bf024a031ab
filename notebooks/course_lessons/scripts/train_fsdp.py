"""Train a network on small images: each process holds a part of the network.

torchrun --nproc-per-node 2 train_fsdp.py
"""

import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.checkpoint import state_dict as states
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset

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
        hidden = pixels.float() / 127.5 - 1  # 0 to 255 becomes -1 to 1
        for each in self.blocks:  # keeps what goes in, and computes the rest again
            hidden = checkpoint(each, hidden, use_reentrant=False)
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
    parser.add_argument("--precision", choices=["bf16", "fp32"])
    parser.add_argument("--accumulate", type=int, default=2, help="parts of a step")
    args = parser.parse_args()

    device = args.device
    on_gpu = device.type == "cuda"
    if on_gpu:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))  # from torchrun
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    has_bf16 = not on_gpu or torch.cuda.get_device_capability(device) >= (8, 0)
    precision = args.precision or ("bf16" if has_bf16 else "fp32")
    autocast = torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")
    parts = args.accumulate

    torch.manual_seed(0)
    network = Network().to(device)
    mesh = init_device_mesh(device.type, (ranks,))
    for module in [*network.blocks, network]:
        fully_shard(module, mesh=mesh)  # each rank keeps 1 / ranks of its weights
    optimizer = torch.optim.Adam(network.parameters(), args.lr)

    train, valid = load_data(args.images)
    valid_share = Subset(valid, range(rank, len(valid), ranks))
    order = DistributedSampler(train)  # gives each rank its share of the same order
    batch = args.batch // ranks
    feed = {"num_workers": 2, "persistent_workers": True, "pin_memory": on_gpu}
    train_loader = DataLoader(train, batch, sampler=order, drop_last=True, **feed)
    valid_loader = DataLoader(valid_share, batch, **feed)

    # A checkpoint holds whole tensors, gathered from all ranks.
    whole = states.StateDictOptions(full_state_dict=True, cpu_offload=True)
    done = 0
    if args.resume:
        state = torch.load(args.checkpoint, map_location="cpu")  # from any device
        states.set_state_dict(
            network,
            optimizer,
            model_state_dict=state["network"],
            optim_state_dict=state["optimizer"],
            options=whole,
        )
        done = state["epochs"]

    for epoch in range(done, args.epochs):
        start = time.perf_counter()
        torch.manual_seed(epoch * ranks + rank)  # each rank draws numbers of its own
        order.set_epoch(epoch)
        network.train()
        total = 0.0
        for pixels, labels in train_loader:
            pixels = pixels.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            optimizer.zero_grad()
            pixel_parts, label_parts = pixels.chunk(parts), labels.chunk(parts)
            for part in range(parts):
                network.set_requires_gradient_sync(part == parts - 1)  # once a step
                with autocast:
                    scores = network(pixel_parts[part])
                    loss = F.cross_entropy(scores, label_parts[part]) / parts
                loss.backward()  # adds to the gradients
                total += loss.detach()
            optimizer.step()
        network.eval()
        right = 0
        with torch.no_grad(), autocast:
            for pixels, labels in valid_loader:
                pixels, labels = pixels.to(device), labels.to(device)
                right += (network(pixels).argmax(1) == labels).sum()
        sums = torch.stack([total / ranks, right])
        dist.all_reduce(sums)
        total, right = sums.tolist()
        weights, moments = states.get_state_dict(network, optimizer, options=whole)
        if rank > 0:
            continue  # one rank saves and prints
        loss, accuracy = total / len(train_loader), right / len(valid)

        state = {
            "network": weights,
            "optimizer": moments,
            "epochs": epoch + 1,
        }
        torch.save(state, args.checkpoint + ".new")
        os.replace(args.checkpoint + ".new", args.checkpoint)  # whole or not at all
        result = f"loss {loss:.4f}  accuracy {accuracy:.1%}"
        seconds = time.perf_counter() - start
        print(f"epoch {epoch + 1}  {result}  {seconds:.1f} s", flush=True)
    dist.destroy_process_group()
    if on_gpu and rank == 0:
        print(f"peak memory {torch.cuda.max_memory_allocated() / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
