"""Measure this machine and keep the result: `python -m course_utils.compare.record`."""

import argparse
import datetime
import json
import platform
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import torch

from course_utils.compare.workloads import as_cuda_graph, cnn_step, product, rnn_step, using_tf32
from course_utils.devices import Device, pick_device
from course_utils.moves import copy_rate
from course_utils.timing import Timing, time_call, using_threads

FOLDER = Path(__file__).parent / "recordings"
WHAT = "speed of one device"  # tells these files from other recordings in the folder
ACCELERATOR_BATCHES = tuple(2**power for power in range(4, 14))  # 16 to 8192
ACCELERATOR_SIDE, CPU_SIDE = 8192, 2048
CPU_BATCHES = ACCELERATOR_BATCHES[:7]  # to 1024: a core needs a second for more


@dataclass(frozen=True)
class Result:
    """One measured or published figure.

    Attributes:
        workload: "rnn", "rnn as a CUDA graph", "cnn", "product", "copy to the device", ...
        precision: such as "fp32" or "bf16"; "pinned" or "pageable" memory for a copy.
        size: samples in the batch, side of the matrix, or bytes of the copy.
        value: the figure, a median where it was measured.
        unit: of the value, such as "steps/s".
    """

    workload: str
    precision: str
    size: int
    value: float
    unit: str


@dataclass(frozen=True)
class Recording:
    """What one device did, with all that is needed to measure it again.

    Attributes:
        label: "measured", by the command, or "published", by the source.
        device: its name, as a person knows it.
        kind: its kind, such as "cuda"; see `devices.KINDS`.
        detail: what else is known of the device.
        threads: CPU threads that one operation could use; 0 where that is not known.
        date: when it was measured or published.
        command: what measured it.
        source: where it was published.
        versions: what was installed.
        results: the figures.
    """

    label: str
    device: str
    kind: str
    detail: str
    threads: int
    date: str
    command: str
    source: str
    versions: dict[str, str]
    results: tuple[Result, ...]

    def find(self, workload: str, precision: str | None = None) -> list[Result]:
        """Return the results of one workload, smallest size first."""
        found = [r for r in self.results if r.workload == workload and precision in (None, r.precision)]
        return sorted(found, key=lambda result: result.size)

    def __repr__(self) -> str:
        made = self.command or self.source
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return f"{self.device} ({self.label} {self.date}{', ' + versions if versions else ''}; {made})"

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        path.write_text(json.dumps({"what": WHAT, **asdict(self)}, indent=1, ensure_ascii=False) + "\n")


def load_recordings(folder: Path = FOLDER) -> list[Recording]:
    """Return every recording of a device's speed in `folder`, published ones last.

    Raises:
        ValueError: a file is not JSON, or is a recording that lacks something.
    """
    found = [recording for path in sorted(folder.glob("*.json")) if (recording := _load(path))]
    return sorted(found, key=lambda recording: recording.label)


def _load(path: Path) -> Recording | None:
    try:
        content = json.loads(path.read_text())
        if content.pop("what", None) != WHAT:
            return None
        results = tuple(Result(**result) for result in content.pop("results"))
        return Recording(**content, results=results)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        names = ", ".join(field.name for field in fields(Recording))
        raise ValueError(
            f"{path.name} is no whole recording ({error}). It needs {names}. Remove it, or make it again with "
            f"python -m course_utils.compare.record."
        ) from error


def record(device: Device, *, max_s: float = 1.0) -> Recording:
    """Measure every workload on `device`.

    Args:
        device: what to measure.
        max_s: seconds to spend on each figure, about.

    Raises:
        ValueError: the device is the XLA rehearsal, which says nothing about the machine that it stands in for.
    """
    if device.rehearsal:
        raise ValueError(f"{device} is a rehearsal on this machine's CPU, not a device to record. Record 'cpu' itself.")
    results = []
    for measure in (_rnn, _cnn, _product, _copies):
        for result in measure(device, max_s):
            print(f"{result.workload}, {result.precision}, {result.size:,}: {result.value:.4g} {result.unit}")
            results.append(result)
    threads = torch.get_num_threads()
    return Recording(
        label="measured",
        device=device.name,
        kind=device.kind,
        detail=device.detail,
        threads=threads,
        date=datetime.date.today().isoformat(),
        command=f"python -m course_utils.compare.record --device {device} --threads {threads} --seconds {max_s:g}",
        source="",
        versions=_versions(),
        results=tuple(results),
    )


def _rnn(device: Device, max_s: float) -> Iterator[Result]:
    step = rnn_step(device)
    yield Result("rnn", "fp32", 16, time_call(step, device=device, max_s=max_s).rate_per_s, "steps/s")
    if device.kind == "cuda":
        with torch.cuda.device(device.torch_device):
            timing = time_call(as_cuda_graph(step), device=device, max_s=max_s)
        yield Result("rnn as a CUDA graph", "fp32", 16, timing.rate_per_s, "steps/s")


def _cnn(device: Device, max_s: float) -> Iterator[Result]:
    for precision in precisions(device):
        for batch in CPU_BATCHES if device.kind == "cpu" else ACCELERATOR_BATCHES:
            with using_tf32(precision == "tf32"):
                timing = time_call(cnn_step(device, batch, precision), device=device, max_s=max_s)
            yield Result("cnn", precision, batch, batch * timing.rate_per_s, "samples/s")


def _product(device: Device, max_s: float) -> Iterator[Result]:
    side = CPU_SIDE if device.kind == "cpu" else ACCELERATOR_SIDE
    for precision in precisions(device):
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        with using_tf32(precision == "tf32"):
            timing = time_call(product(device, side, dtype), device=device, max_s=max_s)
        yield Result("product", precision, side, tera_flops(timing, side), "TFLOP/s")


def _copies(device: Device, max_s: float) -> Iterator[Result]:
    for item in copy_rate(device, max_s=max_s).copies:
        memory = "pinned" if item.pinned else "pageable"
        yield Result(f"copy {item.direction}", memory, item.size_bytes, item.rate_gb_per_s, "GB/s")


def tera_flops(timing: Timing, side: int) -> float:
    """Return the 10^12 floating-point operations a second of a timed product of two matrices with this side."""
    return 2 * side**3 / timing.median_s / 1e12


def precisions(device: Device) -> tuple[str, ...]:
    """Return the precisions that the device has circuits for, as far as this course measures them."""
    if device.kind != "cuda":
        return ("fp32", "bf16") if device.kind == "cpu" else ("fp32",)
    modern = torch.cuda.get_device_capability(device.torch_device) >= (8, 0)
    return ("fp32", "tf32", "bf16") if modern or torch.version.hip else ("fp32",)


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    runtime = {"CUDA": torch.version.cuda, "ROCm": torch.version.hip}
    return versions | {name: version for name, version in runtime.items() if version}


def main(arguments: list[str] | None = None) -> None:
    """Measure a device and write `<device>.json`."""
    parser = argparse.ArgumentParser(prog="python -m course_utils.compare.record", description=main.__doc__)
    parser.add_argument("--device", help="such as cpu or cuda:0; the best one here if not given")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="CPU threads (default: as now)")
    parser.add_argument("--seconds", type=float, default=1.0, help="to spend on each figure (default 1)")
    parser.add_argument("--out", type=Path, default=FOLDER, help="the folder to write to")
    options = parser.parse_args(arguments)
    try:
        device = pick_device(options.device)
        with using_threads(options.threads):
            recording = record(device, max_s=options.seconds)
    except (ValueError, RuntimeError) as error:
        raise SystemExit(f"{parser.prog}: {error}") from error
    path = options.out / f"{re.sub(r'[^a-z0-9]+', '-', device.name.lower()).strip('-')}.json"
    options.out.mkdir(parents=True, exist_ok=True)
    recording.save(path)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
