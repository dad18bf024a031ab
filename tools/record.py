"""Measure everything on one device, for the panel of lesson 5 to show elsewhere: `python
tools/record.py`.
"""

import argparse
import re
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import torch

from course_utils.compare.comparison import Contestant, measure
from course_utils.compare.measurement import Measurement
from course_utils.compare.results import RECORDINGS, Result, describe_machine
from course_utils.compare.workloads import CNN_STEP, PRODUCT, RNN_STEP, Workload
from course_utils.copy_speed import Copy, copy_rate
from course_utils.devices import Device, pick_device
from course_utils.timing import using_threads

ACCELERATOR_BATCHES = tuple(2**power for power in range(4, 14))  # 16 to 8192
# to batch 1024: a core needs a second for more
CPU_BATCHES, CPU_SIDE = ACCELERATOR_BATCHES[:7], 2048


def record(device: Device, *, max_s: float = 1.0) -> Result:
    """Measure the RNN, the CNN, products and copies on `device`, in about `max_s` seconds for each
    figure.

    Raises:
        ValueError: the device is the XLA rehearsal, which says nothing about the machine that it
            stands in for.
    """
    if device.rehearsal:
        raise ValueError(
            f"{device} is a rehearsal on this machine's CPU, not a device to record. Record "
            "'cpu' itself."
        )
    batches, side = (CPU_BATCHES, CPU_SIDE) if device.kind == "cpu" else (ACCELERATOR_BATCHES, 8192)
    works = [(RNN_STEP, 16, "fp32")]
    for precision in precisions(device):
        works += [(CNN_STEP, batch, precision) for batch in batches] + [(PRODUCT, side, precision)]
    found = []
    for work, size, precision in works:
        found.append(measure(device, work, size, precision, max_s=max_s))
        print(f"{work.name}, {precision}, {size:,}: {found[-1].rate:.4g} {work.unit}/s")
    sensors = read_sensors(device)  # at once, while the clocks are those of the last product
    if device.kind == "cuda":
        found.append(measured_as_graph(device, RNN_STEP, 16, "fp32", max_s=max_s))
    who = Contestant(device, torch.get_num_threads())
    found += [copied(who, copy) for copy in copy_rate(device, max_s=max_s).copies]
    command = (
        f"python tools/record.py --device {device} --threads {who.threads} --seconds {max_s:g}"
    )
    return Result(
        tuple(found), command=command, detail=device.detail, sensors=sensors, **describe_machine()
    )


def measured_as_graph(
    device: Device, work: Workload, size: int, precision: str, *, max_s: float
) -> Measurement:
    """Return the time of one call of a workload on a CUDA device that launches all of it at once,
    as a CUDA graph.
    """
    graph = replace(
        work,
        name=f"{work.name} as a CUDA graph",
        build=lambda **asked: as_cuda_graph(work.build(**asked)),
    )
    with torch.cuda.device(device.torch_device):
        return measure(device, graph, size, precision, max_s=max_s)


def as_cuda_graph(step: Callable[[], object]) -> Callable[[], None]:
    """Record what `step` launches on the current CUDA device, and return a function that launches
    all of it at once.

    `step` must launch the same kernels on the same memory at every call, and must not look at a
    result. It runs three times first, so that libraries and the optimizer have made what they need,
    and PyTorch asks for that to happen on a stream of its own.
    Source: PyTorch documentation, CUDA semantics, section on CUDA graphs.
    """
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    # the graph knows addresses, not tensors: keep them alive
    def replay(_held: Callable[[], object] = step) -> None:
        graph.replay()

    return replay


def copied(who: Contestant, copy: Copy) -> Measurement:
    """Return the measurement that a copy is."""
    what = (
        f"Copy {copy.direction}{', pinned' * copy.pinned}",
        "uint8",
        copy.size_bytes,
        "bytes",
        "B",
    )
    whose = (who.label, who.device.kind, who.device.name, who.threads)
    return Measurement(*what, copy.size_bytes, *whose, copy.median_s, warnings=copy.warnings)


def precisions(device: Device) -> tuple[str, ...]:
    """Return the precisions that the device has circuits for, as far as this course measures
    them.
    """
    if device.kind != "cuda":
        return ("fp32", "bf16") if device.kind == "cpu" else ("fp32",)
    if torch.version.hip:  # TF32 needs an MI300 and the variable HIPBLASLT_ALLOW_TF32
        return ("fp32", "bf16")
    modern = torch.cuda.get_device_capability(device.torch_device) >= (8, 0)
    return ("fp32", "tf32", "bf16") if modern else ("fp32",)


def read_sensors(device: Device) -> dict[str, float]:
    """Return what an NVIDIA card says of its clock (MHz) and power (W) at this moment; nothing
    where it does not.
    """
    if device.kind != "cuda":
        return {}
    uuid = torch.cuda.get_device_properties(device.torch_device).uuid
    query = (
        f"nvidia-smi --query-gpu=clocks.sm,power.draw --format=csv,noheader,nounits --id=GPU-{uuid}"
    )
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        said = subprocess.run(query.split(), capture_output=True, text=True, timeout=10).stdout
        return dict(zip(("sm_clock_mhz", "power_w"), map(float, said.split(",")), strict=True))
    return {}


def main(arguments: list[str] | None = None) -> None:
    """Measure a device and write what was found as a JSON file that carries the device's name."""
    parser = argparse.ArgumentParser(prog="python tools/record.py", description=main.__doc__)
    parser.add_argument("--device", help="such as cpu or cuda:0; the best one here if not given")
    parser.add_argument(
        "--threads", type=int, default=torch.get_num_threads(), help="CPU threads (default: as now)"
    )
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="to spend on each figure (default 1)"
    )
    parser.add_argument("--out", type=Path, default=RECORDINGS, help="the folder to write to")
    options = parser.parse_args(arguments)
    try:
        device = pick_device(options.device)
        with using_threads(options.threads):
            result = record(device, max_s=options.seconds)
    except (ValueError, RuntimeError) as error:
        raise SystemExit(f"{parser.prog}: {error}") from error
    path = options.out / f"{re.sub(r'[^a-z0-9]+', '-', device.name.lower()).strip('-')}.json"
    options.out.mkdir(parents=True, exist_ok=True)
    result.save(path)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
