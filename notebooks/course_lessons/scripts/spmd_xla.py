"""Train the network of train_xla.py on all XLA devices at once, from one process."""

import numpy as np
import torch
import torch.nn.functional as F
import torch_xla
import torch_xla.runtime as xr
from torch.utils.data import DataLoader
from torch_xla.distributed.spmd import Mesh, mark_sharding
from train_xla import Network, load_data


def main():
    xr.use_spmd()  # before anything is put on a device
    device = torch_xla.device()  # stands for all devices
    count = xr.global_runtime_device_count()
    mesh = Mesh(np.arange(count), (count,), ("data",))  # one axis, which has a name

    torch.manual_seed(0)
    network = Network().to(device)  # not marked, so each device holds a copy
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    train, _ = load_data(600)

    losses = []
    for pixels, labels in DataLoader(train, batch_size=128, drop_last=True):
        pixels, labels = pixels.to(device), labels.to(device)
        split = mark_sharding(pixels, mesh, ("data", None, None, None))
        mark_sharding(labels, mesh, ("data",))
        loss = F.cross_entropy(network(pixels), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch_xla.sync()
        losses.append(loss.detach())

    images = len(split.local_shards[0].data)
    numbers = " ".join(f"{loss.item():.4f}" for loss in losses)
    print(f"devices: {count}  images on each: {images} of {len(pixels)}  losses: {numbers}")


if __name__ == "__main__":
    main()
