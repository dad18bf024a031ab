"""Compare the estimated with the measured peak of ten networks on this CPU, each trained in a process of its own.

    OMP_NUM_THREADS=1 python tests/benchmarks/memory_on_cpu.py [--write]

It needs timm and Linux. Two things are measured: what PyTorch's allocator had handed out at most (its profiler's
record), and by how much the process's own peak in RAM grew (VmHWM of /proc/self/status), which has in it what kernels
take for themselves and what the C library keeps.
"""

import argparse
import json
import multiprocessing
import statistics

import timm
import torch

from course_utils.estimate.memory import estimate_memory
from course_utils.estimate.memory_result import FITTED
from course_utils.lessons.memory.record import record_memory

# network: batch and side of its images
NETWORKS = {
    "resnet18": (16, 128),
    "resnet50": (8, 128),
    "densenet121": (4, 128),
    "mobilenetv3_large_100": (16, 128),
    "efficientnet_b0": (8, 128),
    "regnety_008": (16, 128),
    "convnext_atto": (16, 128),
    "vit_tiny_patch16_224": (8, 224),
    "mixer_s32_224": (32, 224),
    "deit_small_patch16_224": (4, 224),
}


def measure(name):
    """Return the estimated and the two measured peaks of two training steps, in bytes."""
    batch, side = NETWORKS[name]
    timm.layers.set_fused_attn(False)  # a CPU's fused attention keeps something else than a GPU's
    estimated = estimate_memory(timm.create_model(name), torch.empty(1, 3, side, side), batch=batch)

    def two_steps():
        model = timm.create_model(name)
        optimizer = torch.optim.Adam(model.parameters())
        images = torch.rand(batch, 3, side, side)
        for _ in range(2):
            model(images).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    before = status("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # VmHWM starts anew (proc_pid_clear_refs(5))
    two_steps()
    in_ram = status("VmHWM") - before
    figures = {"estimated": estimated.tensors_bytes, "recorded": record_memory(two_steps).peak_bytes, "in_ram": in_ram}
    return {"model": name, "batch": batch, "image": side} | figures


def status(field):
    """Return a figure of /proc/self/status in bytes."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field))


def main():
    """Measure each network in its own process, print, and if asked, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="add the figures to course_utils/estimate/memory.json")
    asked, rows = parser.parse_args(), []
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        for row in pool.imap(measure, NETWORKS):
            rows.append(row)
            ratios = [f"{row['estimated'] / row[measured]:.3f}" for measured in ("recorded", "in_ram")]
            print(f"{row['model']:24} {' '.join(ratios)}", flush=True)
    for measured in ("recorded", "in_ram"):
        errors = [abs(row["estimated"] / row[measured] - 1) for row in rows]
        print(f"{measured}: the median error is {statistics.median(errors):.1%}, the largest {max(errors):.1%}")
    if asked.write:
        FITTED.write_text(json.dumps(json.loads(FITTED.read_text()) | {"on_cpu": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
