"""What a rehearsal costs: a training step and a small operation, as ratios of one run.

    python benchmarks/rehearsal_cost.py

Both sides run in turn on one thread, and the time is the process's own, so that other programs on
the machine matter little.
"""

import time

import torch
from torch import nn

from course_tools.rehearsal import rehearse

ROUNDS, CALLS = 9, 500


def convolutional_step(device):
    """Return a training step of a small convolutional network."""
    torch.manual_seed(0)
    blocks = [nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU(), nn.MaxPool2d(4)]
    network = nn.Sequential(*blocks, nn.Flatten(), nn.Linear(32 * 49, 10)).to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    images = torch.randn(32, 3, 32, 32).to(device)
    labels = torch.randint(0, 10, (32,)).to(device)

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(images), labels).backward()
        optimizer.step()

    return step


def additions(device):
    """Return many small operations in a row."""
    one = torch.ones(4).to(device)

    def add():
        for _ in range(CALLS):
            one + one

    return add


def fastest_s(work):
    """Return the least seconds of the process that a call takes."""
    work()
    found = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def main():
    """Print the two ratios."""
    torch.set_num_threads(1)
    plain = [fastest_s(make("cpu")) for make in (convolutional_step, additions)]
    with rehearse(hide_real=True):
        rehearsed = [fastest_s(make("cuda")) for make in (convolutional_step, additions)]
    step_ms, ratio = plain[0] * 1e3, rehearsed[0] / plain[0]
    more_us = (rehearsed[1] - plain[1]) / CALLS * 1e6
    print(f"a convolutional step of {step_ms:.0f} ms takes {ratio:.2f} times as long")
    print(f"an operation takes {more_us:.0f} microseconds more")


if __name__ == "__main__":
    main()
