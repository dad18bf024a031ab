"""Compare the estimated with the measured peak of ten networks on this CPU.

Each is trained in processes of its own:

    OMP_NUM_THREADS=1 PYTHONPATH=.venv/networks python benchmarks/memory_on_cpu.py [--write]

It needs timm and Linux with glibc. Three things are measured: what PyTorch's allocator had handed
out at most (its profiler's record), and twice by how much the process's own peak in RAM grew (VmHWM
of /proc/self/status) after a first small step, which loads the kernels' code. Once glibc keeps
freed memory as it likes to, up to some hundred MB of it; once it is told to return every freed
block of 64 kB or more (M_MMAP_THRESHOLD of mallopt(3)), as if it held no reserve.
"""

import argparse
import ctypes
import gc
import json
import multiprocessing
import platform
import statistics
from datetime import date
from functools import partial

import timm
import torch
from course_lessons.evidence.memory import FILE, memory_evidence
from course_lessons.memory.record import record_memory

from course_tools.estimate.memory.estimate_memory import estimate_memory

WAYS = ("recorded", "in_ram_returned", "in_ram")
M_MMAP_THRESHOLD = -3  # of malloc.h
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


def train(name, batch, side):
    """Do two training steps."""
    model = timm.create_model(name)
    optimizer = torch.optim.Adam(model.parameters())
    images = torch.rand(batch, 3, side, side)
    for _ in range(2):
        model(images).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def measure(task):
    """Return the estimated, the recorded and the process's peak of two training steps, in bytes."""
    name, returned = task
    batch, side = NETWORKS[name]
    timm.layers.set_fused_attn(False)  # a CPU's fused attention keeps something else than a GPU's
    libc = ctypes.CDLL("libc.so.6")
    if returned:
        libc.mallopt(M_MMAP_THRESHOLD, 64 * 1024)
    train(name, 2, side)
    gc.collect()
    libc.malloc_trim(0)
    before = status("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # VmHWM starts anew (proc_pid_clear_refs(5))
    train(name, batch, side)
    in_ram = status("VmHWM") - before
    if not returned:
        return {"in_ram": in_ram}
    images = torch.empty(1, 3, side, side)
    estimated = estimate_memory(timm.create_model(name), images, batch=batch, precision="fp32")
    recorded = record_memory(partial(train, name, batch, side)).peak_bytes
    return {"estimated": estimated.tensors_bytes, "recorded": recorded, "in_ram_returned": in_ram}


def status(field):
    """Return a figure of /proc/self/status in bytes."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field))


def main():
    """Measure each network in its own process, print, and if asked, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--write",
        action="store_true",
        help="add the figures to course_lessons/evidence/memory.json",
    )
    asked, rows = parser.parse_args(), []
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for name, (batch, side) in NETWORKS.items():
            row = {"model": name, "batch": batch, "image": side}
            for found in pool.map(measure, [(name, True), (name, False)], chunksize=1):
                row |= found
            rows.append(row)
            ratios = [f"{row['estimated'] / row[way]:.3f}" for way in WAYS]
            print(f"{name:24} {' '.join(ratios)}", flush=True)
    for way in WAYS:
        errors = [abs(row["estimated"] / row[way] - 1) for row in rows]
        print(f"{way}: median error {statistics.median(errors):.1%}, largest {max(errors):.1%}")
    if asked.write:
        where = f"{date.today()}, PyTorch {torch.__version__}, {platform.platform()}"
        where += f", {torch.get_num_threads()} thread"
        known = memory_evidence() | {"on_cpu_measured": where, "on_cpu": rows}
        FILE.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
