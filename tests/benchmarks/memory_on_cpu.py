"""Compare the estimated with the measured peak of ten networks on this CPU, each trained in a process of its own.

    python tests/benchmarks/memory_on_cpu.py [--write]

It needs timm and Linux. Two things are measured: what PyTorch's allocator had handed out at most (its profiler's
record), and by how much the process's own peak in RAM grew (VmHWM of /proc/self/status), which has in it what kernels
take for themselves and what the C library keeps.
"""

import argparse
import json
import statistics
import subprocess
import sys

NETWORKS = {
    "resnet18": 16,
    "resnet50": 8,
    "densenet121": 8,
    "mobilenetv3_large_100": 16,
    "efficientnet_b0": 8,
    "regnety_008": 16,
    "convnext_atto": 16,
    "vit_tiny_patch16_224": 16,
    "mixer_s32_224": 32,
    "deit_small_patch16_224": 8,
}


def measure(name, batch):
    """Return the estimated and the two measured peaks of two training steps, in bytes."""
    import timm
    import torch

    from course_utils.estimate.memory import estimate_memory
    from course_utils.lessons.memory.record import record_memory

    torch.manual_seed(0)
    timm.layers.set_fused_attn(False)  # a CPU's fused attention keeps something else than a GPU's
    estimated = estimate_memory(timm.create_model(name), torch.empty(1, 3, 224, 224), batch=batch)

    def two_steps():
        model = timm.create_model(name)
        optimizer = torch.optim.Adam(model.parameters())
        images = torch.rand(batch, 3, 224, 224)
        for _ in range(2):
            model(images).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    small = timm.create_model("resnet18")
    small(torch.rand(1, 3, 64, 64).expand(2, -1, -1, -1)).sum().backward()  # loads the libraries
    del small
    before = status("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # VmHWM starts anew (proc_pid_clear_refs(5))
    two_steps()
    in_ram = status("VmHWM") - before
    recorded = record_memory(two_steps).peak_bytes
    return {"model": name, "batch": batch, "estimated": estimated.tensors_bytes, "recorded": recorded, "in_ram": in_ram}


def status(field):
    """Return a figure of /proc/self/status in bytes."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field))


def main():
    """Measure each network in its own process, print, and if asked, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="add the figures to course_utils/estimate/memory.json")
    parser.add_argument("--only", help="measure this network in this process")
    asked = parser.parse_args()
    if asked.only:
        print(json.dumps(measure(asked.only, NETWORKS[asked.only])))
        return
    rows = []
    for name in NETWORKS:
        done = subprocess.run([sys.executable, __file__, "--only", name], capture_output=True, text=True, check=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        row = rows[-1]
        print(f"{name:24} {row['estimated'] / row['recorded']:.3f} {row['estimated'] / row['in_ram']:.3f}", flush=True)
    for measured in ("recorded", "in_ram"):
        errors = [abs(row["estimated"] / row[measured] - 1) for row in rows]
        print(f"{measured}: the median error is {statistics.median(errors):.1%}, the largest {max(errors):.1%}")
    if asked.write:
        from course_utils.estimate.memory_result import FITTED

        FITTED.write_text(json.dumps(json.loads(FITTED.read_text()) | {"on_cpu": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
