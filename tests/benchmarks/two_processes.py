"""Hold the estimate of an exchange of gradients against two gloo processes on this machine.

    python tests/benchmarks/two_processes.py [--repeats 15]

Measured: the speed of a plain message, the time of an all-reduce of one number, all-reduces of
several sizes, and a training step of each of two processes with and without
DistributedDataParallel. From the first two, and the step without it, the others are estimated as
lesson 6 estimates them for GPUs. Printed: estimated / measured.
"""

import argparse
import os
import statistics
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from course_utils.estimate.chips import Link
from course_utils.estimate.parallel import exchange_s, overlapped

NUMBERS = [2**n for n in (12, 16, 18, 20, 22, 24)]
WIDTHS = (256, 1024, 2048)


def median_s(work, repeats):
    """Return the median seconds of `work` after a warm-up, begun by both processes together."""
    work()
    seconds = []
    for _ in range(repeats):
        dist.barrier()
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def message(x, rank):
    """Send a tensor from rank 0 to rank 1, and a short answer back."""
    if rank == 0:
        dist.send(x, 1)
        dist.recv(x[:1], 1)
    else:
        dist.recv(x, 0)
        dist.send(x[:1], 0)


def step_of(width, *, exchange):
    """Return a training step of four layers of `width`, and how many numbers its gradients have."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(width, width) for _ in range(4)))
    numbers = sum(p.numel() for p in model.parameters())
    model = DistributedDataParallel(model) if exchange else model
    x = torch.randn(256, width)

    def step():
        model.zero_grad()
        model(x).square().mean().backward()

    return step, numbers


def measure(rank, repeats):
    """Measure in one of the two processes, and print in the first."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="env://", rank=rank, world_size=2)
    big = torch.zeros(2**24)
    round_s = median_s(lambda: dist.all_reduce(big[:1]), 10 * repeats) / 2
    sent_s = median_s(lambda: message(big, rank), repeats) - 2 * round_s
    link = Link(
        "loopback", 4 * big.numel() / sent_s / 1e9, "measured", "this machine", uncertain=False
    )
    say = print if rank == 0 else lambda *_, **__: None
    say(f"link: {link.gb_per_s:.2f} GB/s, {round_s * 1e6:.0f} us a round")
    for numbers in NUMBERS:
        measured = median_s(lambda numbers=numbers: dist.all_reduce(big[:numbers]), repeats)
        estimated = exchange_s(numbers, link, 2, round_s=round_s)
        say(
            f"all-reduce of {numbers:>10,} numbers: estimated / measured {estimated / measured:.2f}"
        )
    for width in WIDTHS:
        alone, numbers = step_of(width, exchange=False)
        together, _ = step_of(width, exchange=True)
        one_s, both_s = median_s(alone, repeats), median_s(together, repeats)
        exchange = exchange_s(numbers, link, 2, round_s=round_s)
        ratios = [(one_s + overlapped(exchange, one_s)) / both_s, (one_s + exchange) / both_s]
        say(
            f"step, {numbers:>10,} numbers, exchange / step {exchange / one_s:.2f}: estimated / measured",
            end=" ",
        )
        say(f"{ratios[0]:.2f} overlapped, {ratios[1]:.2f} one after the other")
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    os.environ |= {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": os.environ.get("MASTER_PORT", "29533"),
    }
    mp.spawn(measure, args=(parser.parse_args().repeats,), nprocs=2)
