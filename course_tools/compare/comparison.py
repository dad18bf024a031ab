"""Compare the same work on several devices: first whether they agree on the answer, then how fast
they find it.

Also: the time of one workload on one device.
"""

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral

import torch

from course_tools.compare.measurement import Measurement
from course_tools.compare.paired_timing import TimedCall, time_together
from course_tools.compare.results import Result, describe_machine
from course_tools.compare.same_draws import SameDraws, seeded
from course_tools.compare.workloads import Workload, build_seeded, using_tf32
from course_utils.devices import Device, as_device, find_devices, wait_for
from course_utils.kinds import kind_called
from course_utils.timing import Timing, time_call, using_threads
from course_utils.xla import start_xla

# The largest difference that rounding explains, as a share of the largest value: many times the
# rounding of one number (2^-24, 2^-11, 2^-9, 2^-11), since products and losses add up many.
TOLERANCE = {"fp32": 2e-5, "tf32": 1e-2, "bf16": 4e-2, "fp16": 1e-2}
Devices = Sequence[Device | torch.device | str | None] | Device | torch.device | str | None
CALLS_TO_CHECK = 2  # a training step shows only in its next loss whether its gradients were right


class WrongAnswer(RuntimeError):
    """A device does not compute what the CPU computes."""


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
        return f"{self.device} (rehearsal)" if self.device.rehearsal else str(self.device)


def cpu_first() -> list[Device]:
    """Return every device here, the CPU first, since the others are compared with it.

    The rehearsal is no device of its own: it takes part where it is named.
    """
    real = [device for device in find_devices() if not device.rehearsal]
    return sorted(real, key=lambda device: device.kind != "cpu")


def contestants(devices: Devices = "all") -> list[Contestant]:
    """Return the contestants: the CPU once with one thread and once with all that are set, and
    each accelerator.

    "all" leaves out a TPU that this process can no longer start, with a warning.

    Raises:
        ValueError: a device has a name that does not exist.
        RuntimeError: a device is not in this machine, or XLA was named and cannot start.
    """
    if devices == "all":
        chosen = [
            device
            for device in cpu_first()
            if not kind_called(device.kind).lazy or _can_start_xla()
        ]
    elif isinstance(devices, Device | torch.device | str | None):
        chosen = [as_device(devices)]
    else:
        chosen = [as_device(device) for device in devices]
    found = []
    for device in dict.fromkeys(chosen):
        if kind_called(device.kind).lazy:
            start_xla()
        if device.kind == "cpu" and torch.get_num_threads() > 1:
            found.append(Contestant(device, 1))
        found.append(Contestant(device, torch.get_num_threads()))
    return found


def _can_start_xla() -> bool:
    try:
        start_xla()
    except RuntimeError as error:
        warnings.warn(f"the TPU takes no part: {error}", stacklevel=4)
        return False
    return True


def compare_devices(
    workload: Workload | Callable,
    sizes: Sequence[int],
    devices: Devices = "all",
    *,
    precision: str = "fp32",
    max_s: float = 2.0,
) -> Result:
    """Check that every device computes the same, then time them alternately.

    >>> def work(size, device):
    ...     numbers = torch.ones(size).to(device)
    ...     return lambda: numbers.sum()
    >>> result = compare_devices(work, [100, 200], "cpu", max_s=0.02)
    >>> result.sizes
    (100, 200)

    Args:
        workload: one of `workloads`, or a function of your own; see `Workload.of`.
        sizes: of the work, each at least 1.
        devices: devices or their names, or a single one; "all" for all that are here, without a
            rehearsal, and None for the best one.
        precision: one of the workload's.
        max_s: seconds to spend on timing each size, about.

    Raises:
        ValueError, RuntimeError, TypeError: a request that cannot be met; nothing was timed.
        WrongAnswer: a device disagrees with the CPU; nothing was timed.
    """
    work, sizes = Workload.of(workload), _in_order(sizes)
    if precision not in work.precisions:
        known = ", ".join(work.precisions)
        raise ValueError(
            f"{work.name!r} was requested in precision {precision!r}, but it knows {known}."
        )
    entrants = contestants(devices)
    if not entrants:
        raise ValueError('devices is empty: name at least one, or pass "all".')
    measurements: list[Measurement] = []
    with using_tf32(precision == "tf32"):
        for size in sizes:
            _check(work, size, entrants, precision)
        for size in sizes:
            measurements += _time_size(work, size, entrants, precision, max_s)
    return Result(tuple(measurements), **describe_machine())


def _in_order(sizes: Iterable[int]) -> list[int]:
    """Return the sizes from the smallest on, each once."""
    numbers = [sizes] if isinstance(sizes, int) else list(sizes)
    if not numbers or any(not isinstance(size, Integral) or size < 1 for size in numbers):
        raise ValueError(f"sizes is {sizes!r}, but it has to list whole numbers of at least 1.")
    return sorted({int(size) for size in numbers})


def _check(work: Workload, size: int, entrants: list[Contestant], precision: str) -> None:
    """Compare each contestant's answers with those of one CPU thread in fp32; stop at the first
    that is wrong.

    All draw the same random numbers: from one seed, or, where a device has a generator of its own,
    by moving what the CPU draws.
    """
    cpu = Contestant(as_device("cpu"), 1)
    exact = "fp32" if "fp32" in work.precisions else precision
    right = _answers(work, size, cpu, exact)
    if not right:
        warnings.warn(
            f"{work.name!r} returns nothing, so nobody knows whether the devices agree. Let it "
            "return a result, such as its loss.",
            stacklevel=3,
        )
    for one in entrants:
        error = _largest_error(_answers(work, size, one, precision), right)
        if error > TOLERANCE[precision] and one.device.kind != "cpu":
            with SameDraws():
                error = _largest_error(_answers(work, size, one, precision), right)
        if not error <= TOLERANCE[precision]:  # NaN is wrong too
            raise WrongAnswer(
                f"{one.label} disagrees with {cpu.label} in {exact} on {work.name!r} with "
                f"{work.size_name} {size}: they differ by {error:.2g} of the largest value, but "
                f"rounding in {precision} explains only {TOLERANCE[precision]:.2g}. Nothing was "
                "timed. (NaN never agrees. Dropout does, except inside an LSTM, a GRU or an "
                "attention of a GPU, and numbers of NumPy or `random` do not: set dropout=0 for "
                "the comparison, which changes the time little, and draw with torch.)"
            )


def _answers(work: Workload, size: int, entrant: Contestant, precision: str) -> list[torch.Tensor]:
    answers = []
    with using_threads(entrant.threads):
        call = build_seeded(work, size, entrant.device, precision)
        for number in range(CALLS_TO_CHECK):
            with seeded(number):
                answer = call()
            found = _flatten(answer, work.name)
            wait_for(entrant.device)  # XLA then compiles the same programs as under the timer
            # on the CPU: MPS has no float64
            answers += [one.cpu().to(_widest(one.dtype)) for one in found]
    return answers


def _flatten(answer: object, name: str) -> list[torch.Tensor]:
    """Return the tensors and numbers of a nested answer, in order."""
    if answer is None:
        return []
    if isinstance(answer, torch.Tensor):
        return [answer.detach()]
    if isinstance(answer, bool | int | float):
        return [torch.tensor(answer)]
    if isinstance(answer, Mapping):
        answer = list(answer.values())
    if isinstance(answer, list | tuple):
        return [tensor for part in answer for tensor in _flatten(part, name)]
    raise TypeError(
        f"{name!r} answered with {type(answer).__name__}. Return a tensor or a number, or a list "
        "or a dict of them."
    )


def _widest(dtype: torch.dtype) -> torch.dtype:
    return torch.complex128 if dtype.is_complex else torch.float64


def _largest_error(answers: list[torch.Tensor], right: list[torch.Tensor]) -> float:
    if [one.shape for one in answers] != [one.shape for one in right]:
        return math.inf
    largest = 0.0
    for this, that in zip(answers, right, strict=True):
        if this.numel():
            error = (this - that).abs().max() / that.abs().max().clamp_min(1e-30)
            largest = max(largest, float(error)) if error == error else math.nan
        if math.isnan(largest):
            break
    return largest


def _time_size(
    work: Workload, size: int, entrants: list[Contestant], precision: str, max_s: float
) -> list[Measurement]:
    works = {}
    for one in entrants:
        call = build_seeded(work, size, one.device, precision)
        works[one.label] = TimedCall(call, one.device, one.threads)
    timings = time_together(works, max_s=max_s).timings
    return [_measurement(work, size, precision, one, timings[one.label]) for one in entrants]


def _measurement(
    work: Workload, size: int, precision: str, entrant: Contestant, timing: Timing
) -> Measurement:
    return Measurement(
        workload=work.name,
        precision=precision,
        size=size,
        size_name=work.size_name,
        unit=work.unit,
        items=work.items(size),
        label=entrant.label,
        kind=entrant.device.kind,
        device=entrant.device.name,
        threads=entrant.threads,
        rounds_s=timing.blocks_s,
        warnings=timing.warnings,
    )


def measure(
    device: Device | torch.device | str | None,
    work: Workload,
    size: int,
    precision: str,
    *,
    max_s: float,
) -> Measurement:
    """Return the time of one call of a workload on a device."""
    device = as_device(device)
    with using_tf32(precision == "tf32"):
        timing = time_call(build_seeded(work, size, device, precision), device=device, max_s=max_s)
    return _measurement(work, size, precision, Contestant(device, timing.threads), timing)
