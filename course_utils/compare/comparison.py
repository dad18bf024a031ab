"""Compare the same work on several devices: first whether they agree on the answer, then how fast they find it."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from course_utils.compare.results import Comparison, Row
from course_utils.compare.results_file import made_here
from course_utils.compare.suite import Workload, build_seeded
from course_utils.compare.workloads import using_tf32
from course_utils.devices import Device, find_devices, pick_device, wait_for
from course_utils.paired import Work, time_together
from course_utils.timing import using_threads
from course_utils.xla import start_xla

# The largest difference that rounding explains, as a share of the largest value: many times the rounding of one
# number (2^-24, 2^-11, 2^-9, 2^-11), since products and losses add up many.
TOLERANCE = {"fp32": 2e-5, "tf32": 1e-2, "bf16": 4e-2, "fp16": 1e-2}
CALLS_TO_CHECK = 2  # a training step shows only in its next loss whether its gradients were right


class WrongAnswer(RuntimeError):
    """A device computes something else than the CPU does."""


@dataclass(frozen=True)
class Contestant:
    """A device, with a number of CPU threads."""

    device: Device
    threads: int

    @property
    def label(self) -> str:
        """The name in tables and pictures."""
        if self.device.kind == "cpu":
            return f"cpu, {self.threads} thread{'s' if self.threads > 1 else ''}"
        return f"{self.device}{' (rehearsal)' if self.device.rehearsal else ''}"


def cpu_first() -> list[Device]:
    """Return every device here, the CPU first, since the others are compared with it."""
    return sorted(find_devices(), key=lambda device: device.kind != "cpu")


def contestants(devices: Sequence[Device | str] | None = None) -> list[Contestant]:
    """Return who takes part: the CPU once with one thread and once with all that are set, and each accelerator.

    Args:
        devices: devices or their names; None for all that are here.

    Raises:
        ValueError, RuntimeError: as `pick_device` does.
    """
    found = cpu_first() if devices is None else devices
    chosen = [device if isinstance(device, Device) else pick_device(device) for device in found]
    if any(device.kind == "xla" for device in chosen):
        start_xla()
    threads = torch.get_num_threads()
    return [
        Contestant(device, number)
        for device in dict.fromkeys(chosen)
        for number in sorted({1, threads} if device.kind == "cpu" else {threads})
    ]


def compare_devices(
    workload: Workload | Callable,
    sizes: Sequence[int],
    devices: Sequence[Device | str] | None = None,
    *,
    precision: str = "fp32",
    tf32: bool = False,
    max_s: float = 2.0,
) -> Comparison:
    """Check that every device computes the same, then time them in turn.

    Args:
        workload: one of `suite.SUITE`, or a function of your own; see `Workload.of`.
        sizes: of the work, each at least 1.
        devices: devices or their names; None for all that are here.
        precision: one of the workload's.
        tf32: whether float32 products on NVIDIA GPUs may round to TF32, in precision "fp32" too.
        max_s: seconds to spend on timing each size, about.

    Raises:
        ValueError, RuntimeError, TypeError: a request that cannot be met; nothing was timed.
        WrongAnswer: a device computes something else than the CPU; nothing was timed.
    """
    *_, last = compare_steps(workload, sizes, devices, precision=precision, tf32=tf32, max_s=max_s)
    return last


def compare_steps(
    workload: Workload | Callable,
    sizes: Sequence[int],
    devices: Sequence[Device | str] | None = None,
    *,
    precision: str = "fp32",
    tf32: bool = False,
    max_s: float = 2.0,
) -> Iterator[Comparison]:
    """As `compare_devices`, yielding what is there so far: once after the check, and once after each size."""
    work, sizes = Workload.of(workload), sorted(dict.fromkeys(sizes))
    _check_request(work, sizes, precision, max_s)
    who = contestants(devices)
    if not who:
        raise ValueError("a comparison needs a device, but none was named. Name 'cpu', or pass None for all.")
    tf32 = tf32 or precision == "tf32"
    result = Comparison(work.name, work.size_name, work.unit, precision, tf32, (), made_here())
    with using_tf32(tf32):
        errors = {(size, one): error for size in sizes for one, error in _errors(work, size, who, precision, tf32)}
    yield result
    for size in sizes:
        with using_tf32(tf32):
            rows = _time_size(work, size, who, precision, max_s, errors)
        result = replace(result, rows=(*result.rows, *rows))
        yield result


def _check_request(work: Workload, sizes: list[int], precision: str, max_s: float) -> None:
    if not sizes or any(not isinstance(size, int) or isinstance(size, bool) or size < 1 for size in sizes):
        raise ValueError(f"a comparison needs sizes that are whole numbers from 1 on, but got {sizes}.")
    if precision not in work.precisions:
        raise ValueError(
            f"{work.name!r} was requested in precision {precision!r}, but it knows {', '.join(work.precisions)}."
        )
    if not max_s > 0:
        raise ValueError(f"a comparison needs a positive time for each size, but got max_s={max_s}.")


def _errors(work: Workload, size: int, who: list[Contestant], precision: str, tf32: bool):
    """Yield each contestant with its error, and stop at the first that is wrong."""
    cpu, exact = Contestant(pick_device("cpu"), 1), "fp32" if "fp32" in work.precisions else precision
    with using_threads(1):
        right = _answers(work, size, cpu.device, exact)
    allowed = TOLERANCE["tf32" if tf32 and precision == "fp32" else precision]
    for one in who:
        with using_threads(one.threads):
            found = right if (one, precision) == (cpu, exact) else _answers(work, size, one.device, precision)
        error = _largest_error(found, right)
        if not error <= allowed:  # NaN is wrong too
            raise WrongAnswer(
                f"{one.label} computes something else than the CPU for {work.name!r} with {work.size_name} {size}: "
                f"they differ by {error:.2g} of the largest value, and {precision} explains {allowed:.2g}. "
                "Nothing was timed."
            )
        yield one, error


def _answers(work: Workload, size: int, device: Device, precision: str) -> list[torch.Tensor]:
    call, answers = build_seeded(work, size, device, precision), []
    for _ in range(CALLS_TO_CHECK):
        answer = call()
        wait_for(device)  # on XLA this cuts the recording as the timer does, so that both share their programs
        answers.append(torch.as_tensor(answer).detach().to("cpu", torch.float64, copy=True))
    return answers


def _largest_error(found: list[torch.Tensor], right: list[torch.Tensor]) -> float:
    worst = 0.0
    for this, that in zip(found, right, strict=True):
        if this.shape != that.shape:
            return math.inf
        if that.numel():
            error = float((this - that).abs().max() / that.abs().max().clamp_min(1e-30))
            worst = math.nan if math.isnan(error) or math.isnan(worst) else max(worst, error)
    return worst


def _time_size(work: Workload, size: int, who, precision: str, max_s: float, errors) -> list[Row]:
    works = {one.label: Work(build_seeded(work, size, one.device, precision), one.device, one.threads) for one in who}
    together = time_together(works, max_s=max_s)
    return [
        Row(
            size=size,
            label=one.label,
            kind=one.device.kind,
            device=one.device.name,
            threads=one.threads,
            first_s=together.timings[one.label].first_s,
            rounds_s=together.rounds_s[one.label],
            items=work.items(size),
            error=errors[size, one],
            warnings=together.timings[one.label].warnings,
        )
        for one in who
    ]
