"""Compare the same work on several devices: first whether they agree on the answer, then how fast
they find it. `measure` times one workload on one device.
"""

from collections.abc import Callable, Iterable, Sequence
from numbers import Integral

import torch

from course_tools.compare.agreement import check_agreement
from course_tools.compare.contestants import Contestant, Devices, find_contestants
from course_tools.compare.measurement import Measurement
from course_tools.compare.paired_timing import TimedCall, time_together
from course_tools.compare.results import Result, describe_machine
from course_tools.compare.workloads import Workload, build_seeded, using_tf32
from course_utils.devices import Device, as_device
from course_utils.timing import Timing, time_call


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
    contestants = find_contestants(devices)
    if not contestants:
        raise ValueError('devices is empty: name at least one, or pass "all".')
    measurements: list[Measurement] = []
    with using_tf32(precision == "tf32"):
        for size in sizes:
            check_agreement(work, size, contestants, precision)
        for size in sizes:
            measurements += _time_size(work, size, contestants, precision, max_s)
    return Result(tuple(measurements), **describe_machine())


def _in_order(sizes: Iterable[int]) -> list[int]:
    """Return the sizes from the smallest on, each once."""
    numbers = [sizes] if isinstance(sizes, int) else list(sizes)
    if not numbers or any(not isinstance(size, Integral) or size < 1 for size in numbers):
        raise ValueError(f"sizes is {sizes!r}, but it has to list whole numbers of at least 1.")
    return sorted({int(size) for size in numbers})


def _time_size(
    work: Workload, size: int, contestants: list[Contestant], precision: str, max_s: float
) -> list[Measurement]:
    works = {}
    for one in contestants:
        call = build_seeded(work, size, one.device, precision)
        works[one.label] = TimedCall(call, one.device, one.threads)
    timings = time_together(works, max_s=max_s).timings
    return [_measurement(work, size, precision, one, timings[one.label]) for one in contestants]


def _measurement(
    work: Workload, size: int, precision: str, one: Contestant, timing: Timing
) -> Measurement:
    return Measurement(
        workload=work.name,
        precision=precision,
        size=size,
        size_name=work.size_name,
        unit=work.unit,
        items=work.items(size),
        label=one.label,
        kind=one.device.kind,
        device=one.device.name,
        threads=one.threads,
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
