"""Does the advice of find_bottleneck help? It is followed on loops with a bottleneck built in.

    python tests/benchmarks/follow_advice.py [--rounds 3] [--json FILE]

An epoch before and an epoch after the change are timed in turn, starting the workers included. The
figure is the median ratio of their times: 2 means twice as fast. Advice that needs a GPU (copies,
16 bits, a GPU in place of a processor) is not followed on a machine without one.
"""

import argparse
import json
import re
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, TensorDataset

from course_tools.timeline.bottleneck import Bottleneck, find_bottleneck

Step = Callable[[Any], object]


class Images(Dataset):
    """Images that take `pause_s` of waiting, or of computing, each."""

    def __init__(self, pause_s: float, computes: bool):
        self.pause_s, self.computes = pause_s, computes

    def __len__(self) -> int:
        return 512

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.computes:
            end = time.thread_time() + self.pause_s
            while time.thread_time() < end:
                pass
        else:
            time.sleep(self.pause_s)
        return torch.ones(64)


@dataclass(frozen=True)
class Case:
    """A loop, the part that was built in, and what to do about it given the verdict."""

    built_in: str
    step: Step
    loader: Iterable[Any]
    follow: Callable[[Bottleneck], tuple[str, Step, Iterable[Any]]]


def training_step(network: nn.Module) -> Step:
    """Return a training step of a network on a batch of numbers."""
    optimizer = torch.optim.SGD(network.parameters(), 1e-3)

    def step(batch: Any) -> None:
        inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
        network(inputs).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def workers_of(found: Bottleneck) -> int:
    """Return the number of workers in the advice."""
    said = re.search(r"num_workers=(\d+)", found.advice)
    assert said, found
    return int(said[1])


def cases() -> dict[str, Case]:
    """Return the loops by name."""
    small = training_step(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)))
    tensors = TensorDataset(torch.ones(20_000, 64), torch.ones(20_000))
    deep = nn.Sequential(*(nn.Linear(8, 8) for _ in range(60)))
    curved = nn.Sequential(nn.Linear(8, 8), *(nn.Tanh() for _ in range(150)))
    few = [torch.ones(4, 8) for _ in range(256)]
    many = [torch.ones(64, 8) for _ in range(16)]

    def whole_batches(found: Bottleneck) -> tuple[str, Step, Iterable[Any]]:
        (line,) = re.findall(r"DataLoader\(.*?\)\)(?=\. )", found.advice)
        names = {"DataLoader": DataLoader, "BatchSampler": BatchSampler, "dataset": tensors}
        return "whole batches", small, eval(line, {**names, "RandomSampler": RandomSampler})

    def more_workers(dataset: Images) -> Callable[[Bottleneck], tuple[str, Step, Iterable[Any]]]:
        def follow(found: Bottleneck) -> tuple[str, Step, Iterable[Any]]:
            workers = workers_of(found)
            return f"num_workers={workers}", small, DataLoader(dataset, 8, num_workers=workers)

        return follow

    def workers_instead(found: Bottleneck) -> tuple[str, Step, Iterable[Any]]:
        return "not advised: num_workers=2", small, DataLoader(tensors, 128, True, num_workers=2)

    def larger_batch(found: Bottleneck) -> tuple[str, Step, Iterable[Any]]:
        assert "a larger batch" in found.advice, found
        return "batch 64 in place of 4", training_step(deep), many

    def compiled(network: nn.Module) -> Callable[[Bottleneck], tuple[str, Step, Iterable[Any]]]:
        def follow(found: Bottleneck) -> tuple[str, Step, Iterable[Any]]:
            assert "torch.compile" in found.advice, found
            return "torch.compile", training_step(torch.compile(network)), few

        return follow

    waiting, computing = Images(2e-3, computes=False), Images(2e-3, computes=True)
    return {
        "tensors in memory": Case("loader", small, DataLoader(tensors, 128, True), whole_batches),
        "the same tensors": Case("loader", small, DataLoader(tensors, 128, True), workers_instead),
        "a slow drive": Case("loader", small, DataLoader(waiting, 8), more_workers(waiting)),
        "decoding": Case("loader", small, DataLoader(computing, 8), more_workers(computing)),
        "60 tiny layers": Case("launches", training_step(deep), few, larger_batch),
        "the same": Case("launches", training_step(deep), few, compiled(deep)),
        "150 tiny tanh": Case("launches", training_step(curved), few, compiled(curved)),
    }


def seconds(step: Step, loader: Iterable[Any]) -> float:
    """Return the time of an epoch."""
    start = time.perf_counter()
    for batch in loader:
        step(batch)
    return time.perf_counter() - start


def main() -> None:
    """Print the verdict on each loop, and how many times as fast it is with the advice followed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = []
    for name, case in cases().items():
        found = find_bottleneck(case.step, case.loader, device="cpu")
        if found.limit != case.built_in:
            print(f"{name}: WRONG, {case.built_in} was built in. {found}")
            continue
        change, step, loader = case.follow(found)
        seconds(step, loader)  # compiles
        ratios = []
        for number in range(options.rounds):
            pair = [(case.step, case.loader), (step, loader)]
            times = [seconds(*one) for one in (pair if number % 2 == 0 else pair[::-1])]
            before, after = times if number % 2 == 0 else times[::-1]
            ratios.append(before / after)
        ratio = statistics.median(ratios)
        results.append({"loop": name, "change": change, "times_as_fast": ratio, "ratios": ratios})
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(f"{name}: {change}: {ratio:.2f} times as fast ({spread})", flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
