"""What the GPU lesson measures beside bare loops of the same work: is anything lost on the way?

    python tests/benchmarks/gpu_lesson.py [--device cuda:0] [--rounds 7] [--json FILE]

Three comparisons, each in A B B A order with the median of the ratios: the product of matrices
against torch.mm in a loop, the copies against copy_ in a loop, and the CNN on images that are on
the device against a training loop written out here. On a GPU the course promises 0.90, 0.90 and
0.95; on a CPU the figures say the same of its loops.
"""

import argparse
import json
import statistics
import time

import torch
from torch import nn

from course_utils.compare.workloads import cnn_step, product
from course_utils.copy_speed import _copiers
from course_utils.data.drawn_images import draw_shapes
from course_utils.data.models import ImageCNN
from course_utils.devices import pick_device, wait_for
from course_utils.timing import time_call


def bare_seconds(fn, device, total_s: float) -> float:
    """Return the median seconds a call of plain loops of some milliseconds, which wait for the
    device at their end.
    """

    def loop(calls: int) -> float:
        wait_for(device)
        start = time.perf_counter()
        for _ in range(calls):
            fn()
        wait_for(device)
        return (time.perf_counter() - start) / calls

    loop(3)
    calls = max(1, round(2e-3 / loop(3)))
    end, seconds = time.perf_counter() + total_s, []
    while time.perf_counter() < end or len(seconds) < 5:
        seconds.append(loop(calls))
    return statistics.median(seconds)


def bare_product(device, side):
    a, b = (
        torch.randn(side, side, device=device.torch_device, dtype=torch.bfloat16) for _ in range(2)
    )
    return lambda: torch.mm(a, b)


def bare_copy(copier):
    # On the very same memory: where two buffers lie decides about caches, and so about half of the
    # speed on a CPU.
    target, source = copier.func.__self__, copier.args[0]
    return lambda: target.copy_(source)


def bare_cnn(device, batch):
    model = ImageCNN().to(device.torch_device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    images, labels = (tensor.to(device.torch_device) for tensor in draw_shapes(batch, seed=42))

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


def pairs(device) -> dict:
    """Return each comparison: its name, the lesson's work, and the bare work."""
    on_cpu = device.kind == "cpu"
    side, size_bytes, batch = (1024, 2**22, 256) if on_cpu else (8192, 2**26, 8192)
    copier = next(iter(_copiers(device, size_bytes, device.kind == "cuda").values()))
    return {
        f"product, {side}, bf16": (product(device, side, "bf16"), bare_product(device, side)),
        f"copy, {size_bytes:,} bytes": (copier, bare_copy(copier)),
        f"CNN, batch {batch}": (cnn_step(device, batch), bare_cnn(device, batch)),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args()
    device, found = pick_device(options.device), {}
    if device.kind == "cpu":
        torch.set_num_threads(1)
    print(f"on {device.name}: speed of the lesson's way as a share of the bare loop's")
    for name, (ours, bare) in pairs(device).items():
        ratios = []
        for _ in range(options.rounds):
            first = bare_seconds(bare, device, options.seconds)
            here = [
                time_call(ours, device=device, max_s=options.seconds).median_s for _ in range(2)
            ]
            ratios.append((first + bare_seconds(bare, device, options.seconds)) / sum(here))
        found[name] = statistics.median(ratios)
        print(f"{name:>28}: {found[name]:.3f} (from {min(ratios):.3f} to {max(ratios):.3f})")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(
                {"device": device.name, "torch": torch.__version__, "share": found}, file, indent=1
            )


if __name__ == "__main__":
    main()
