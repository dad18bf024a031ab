"""What `to_device` costs beside Lightning's `move_data_to_device`, on nested batches.

    python tests/benchmarks/moves.py [--device cpu] [--json FILE]

The two take turns in A B B A order, so that a machine that slows down or speeds up harms both
alike; the ratio is the median over the rounds. On "cpu" and "meta" no byte is copied, so all that
is compared is the walk through the containers. On an accelerator the bytes of the large batch count
too.
"""

import argparse
import json
import statistics
import time
from collections import namedtuple
from dataclasses import dataclass

import torch
from lightning.fabric.utilities.apply_func import move_data_to_device

from course_utils.devices import Device
from course_utils.transfers import to_device

Pair = namedtuple("Pair", "left right")


@dataclass
class Batch:
    images: torch.Tensor
    labels: torch.Tensor


def batches() -> dict:
    def numbers(*shape):
        return torch.rand(*shape)

    return {
        "pair": (numbers(256, 8), numbers(256)),
        "dict": {"inputs": numbers(256, 8), "targets": numbers(256), "name": "a batch", "epoch": 3},
        "nested": {
            "views": [numbers(16, 8) for _ in range(8)],
            "pair": Pair(numbers(4), {"mask": numbers(4), "length": 4}),
            "meta": {
                "names": ["a", "b", "c"],
                "ids": (1, 2, 3),
                "weights": (numbers(4), numbers(4)),
            },
        },
        "dataclass": [Batch(numbers(16, 8), numbers(16)) for _ in range(4)],
        "large": {"inputs": numbers(4096, 3072), "targets": numbers(4096)},
    }


def seconds(fn, calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        fn()
    if torch.accelerator.is_available():
        torch.accelerator.synchronize()
    return (time.perf_counter() - start) / calls


def compare(batch, device: torch.device, rounds: int) -> dict:
    target = Device("meta", 0, "no data") if device.type == "meta" else device

    def ours():
        return to_device(batch, target, non_blocking=True)  # as Lightning does

    def theirs():
        return move_data_to_device(batch, device)

    calls = max(1, round(2e-3 / seconds(ours, 10)))
    pairs = []
    for _ in range(rounds):
        a, b, c, d = (seconds(fn, calls) for fn in (ours, theirs, theirs, ours))
        pairs.append(((a + d) / 2, (b + c) / 2))
    return {
        "to_device_us": statistics.median(ours for ours, _ in pairs) * 1e6,
        "lightning_us": statistics.median(theirs for _, theirs in pairs) * 1e6,
        "ratio": statistics.median(ours / theirs for ours, theirs in pairs),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--device", nargs="+", default=["cpu", "meta"], help="such as cpu, meta or cuda:0"
    )
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = {}
    for device in options.device:
        for name, batch in batches().items():
            found[f"{name} to {device}"] = figures = compare(
                batch, torch.device(device), options.rounds
            )
            print(
                f"{name:>10} to {device}: to_device {figures['to_device_us']:8.1f} us, "
                f"Lightning {figures['lightning_us']:8.1f} us, ratio {figures['ratio']:.2f}"
            )
    if options.json:
        with open(options.json, "w") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
