"""Time a call on any device: wait for the device, keep the first call apart, repeat, and show the spread."""

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from course_utils.devices import Device, pick_device, wait_for
from course_utils.xla import start_xla, xla_counters

BLOCK_S = 2e-4  # one reading of the clock spans at least this: the clock itself costs about 1e-7
SPREAD = 0.02  # stop when the 95 % interval of the median is this narrow, as a share of the median
MIN_BLOCKS, MAX_BLOCKS = 10, 10_000
MAX_COMPILING = 10  # calls in a row, or blocks, that may compile on XLA before that is called a fault of the call
KEEPS_COMPILING = (
    f"the call to be timed compiled a new program {MAX_COMPILING} times, so it has no steady state. A shape or a "
    "constant changes from call to call: pad to one shape, and make the constant a tensor."
)


@dataclass(frozen=True)
class Timing:
    """What repeated, synchronised measurement of one call found.

    Attributes:
        device: where the work ran, such as "cpu" or "cuda:0".
        threads: how many CPU threads PyTorch could use for one operation.
        first_s: seconds of the very first call, with whatever it compiled and allocated.
        blocks_s: seconds a call in each timed block, in the order in which they were taken.
        calls_per_block: how many calls one block held.
    """

    device: str
    threads: int
    first_s: float
    blocks_s: tuple[float, ...]
    calls_per_block: int

    @property
    def median_s(self) -> float:
        """Median seconds of one call in the steady state."""
        return statistics.median(self.blocks_s)

    @property
    def iqr_s(self) -> tuple[float, float]:
        """The quartiles, between which the middle half of the blocks lies."""
        low, _, high = statistics.quantiles(self.blocks_s, n=4)
        return low, high

    @property
    def interval_s(self) -> tuple[float, float]:
        """The 95 % confidence interval of the median."""
        return median_interval(self.blocks_s)

    @property
    def rate_per_s(self) -> float:
        """Calls a second in the steady state."""
        return 1 / self.median_s

    def __repr__(self) -> str:
        low, high = self.iqr_s
        return (
            f"{format_seconds(self.median_s)} a call on {self.device}, {self.threads} threads "
            f"(middle half {format_seconds(low)} to {format_seconds(high)}, "
            f"{len(self.blocks_s) * self.calls_per_block} calls; the first took {format_seconds(self.first_s)})"
        )


def time_call(
    fn: Callable[[], object],
    *,
    device: Device | str | None = "cpu",
    threads: int | None = None,
    max_s: float = 2.0,
    clock: Callable[[], float] = time.perf_counter,
) -> Timing:
    """Time `fn()` until the median is known to within a few per cent.

    Args:
        fn: the work, without arguments. It must do the same work at every call.
        device: where `fn` works, and so what to wait for; a `Device`, its name, or None for the best one.
        threads: CPU threads for one operation while timing; None leaves the setting alone.
        max_s: stop after about this many seconds of timed work, however wide the interval still is.
        clock: returns seconds; tests put their own here.

    Returns:
        The timing, first call apart.

    Raises:
        ValueError: `max_s` or `threads` is not positive.
        RuntimeError: on XLA, the call runs nothing, or keeps compiling.
    """
    if max_s <= 0 or (threads is not None and threads < 1):
        raise ValueError(f"time_call needs a positive time and thread count, but got max_s={max_s}, threads={threads}.")
    device = device if isinstance(device, Device) else pick_device(device)
    with using_threads(threads or torch.get_num_threads()), _garbage_collection_off():
        if device.kind == "xla":
            start_xla()
        first_s = _time_block(fn, 1, device, clock)
        _compile_all(fn, device)
        calls = _calls_for_a_block(fn, device, clock)
        blocks = list(_time_until_narrow(fn, calls, device, clock, max_s))
        return Timing(str(device), torch.get_num_threads(), first_s, tuple(blocks), calls)


@contextmanager
def using_threads(threads: int) -> Iterator[None]:
    """Let PyTorch use this many CPU threads for one operation inside the block, and the former number after it."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def median_interval(values: tuple[float, ...]) -> tuple[float, float]:
    """Return the 95 % confidence interval of the median from order statistics, without assuming a distribution.

    With n values the k-th smallest and k-th largest enclose the median with the chance that a Binomial(n, 1/2)
    gives; k follows from its normal approximation. With fewer than 6 values none reaches 95 %: the range is given.
    Source: J. D. Gibbons and S. Chakraborti, Nonparametric Statistical Inference, section 5.2.
    """
    ordered = sorted(values)
    k = max(0, math.floor((len(ordered) - 1.96 * math.sqrt(len(ordered))) / 2))
    return ordered[k], ordered[-1 - k]


def format_seconds(seconds: float) -> str:
    """Write a time with three digits and the unit that a person would use."""
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _time_block(fn: Callable[[], object], calls: int, device: Device, clock: Callable[[], float]) -> float:
    wait_for(device)
    start = clock()
    for _ in range(calls):
        result = fn()
        if device.kind == "xla":  # identical recorded calls would be merged into one, so run each on its own
            wait_for(device)
    wait_for(device)
    elapsed = clock() - start
    del result  # kept until here: XLA does not run what nobody holds
    return elapsed / calls


def _compilations(device: Device) -> int:
    return xla_counters().compilations if device.kind == "xla" else 0


def _compile_all(fn: Callable[[], object], device: Device) -> None:
    """Call `fn` on XLA until a call compiles nothing. The second call of a training step still does."""
    for _ in range(MAX_COMPILING if device.kind == "xla" else 0):
        before = xla_counters()
        _time_block(fn, 1, device, time.perf_counter)
        did = xla_counters() - before
        if did.executions == 0:
            raise RuntimeError(
                "the call to be timed ran nothing on XLA, which leaves out what nobody holds. Return its result."
            )
        if did.compilations == 0:
            return
    if device.kind == "xla":
        raise RuntimeError(KEEPS_COMPILING)


def _calls_for_a_block(fn: Callable[[], object], device: Device, clock: Callable[[], float]) -> int:
    calls = 1
    while (per_call := _time_block(fn, calls, device, clock)) * calls < BLOCK_S and calls < 10**7:
        calls = max(2 * calls, min(10 * calls, math.ceil(BLOCK_S / max(per_call, 1e-12))))
    return calls


def _time_until_narrow(fn, calls: int, device: Device, clock, max_s: float) -> Iterator[float]:
    values: list[float] = []
    spent, compiling = 0.0, 0
    while len(values) < MAX_BLOCKS and (spent < max_s or len(values) < 2):
        before = _compilations(device)
        value = _time_block(fn, calls, device, clock)
        spent += value * calls
        if _compilations(device) > before:  # no part of the steady state
            compiling += 1
            if compiling == MAX_COMPILING:
                raise RuntimeError(KEEPS_COMPILING)
            continue
        values.append(value)
        yield value
        if len(values) >= MIN_BLOCKS and len(values) % 5 == 0:
            low, high = median_interval(tuple(values))
            if high - low <= 2 * SPREAD * statistics.median(values):
                return


@contextmanager
def _garbage_collection_off() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
