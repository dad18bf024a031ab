"""Time a call on any device: wait for it, keep the first call apart, repeat, show the spread.

A `Stopwatch` reads the time of one function block by block; `time_call` reads until the median is
known, and says why a figure is unreliable.
"""

import gc
import math
import os
import statistics
import time
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat

import torch

from course_utils.devices import Device, as_device, wait_for
from course_utils.kinds import kind_called
from course_utils.tables import wrapped
from course_utils.units import format_seconds
from course_utils.xla import XLACounters, start_xla, xla_counters

# stop when the 95% interval of the median reaches no further than this share of it to either side
SPREAD = 0.02
MIN_BLOCKS, MAX_BLOCKS = 20, 10_000
# Twenty blocks of a short call are over in 4 ms. The median of 7 ms of them scatters less from
# repeat to repeat, and is still had in a twentieth of the time of `blocked_autorange`
# (benchmarks/timing_fidelity.py, section short).
MIN_S = 7e-3
FEWEST = 6  # fewer readings than this have no 95% interval of the median
CLEAN = 0.97  # a block in which the thread had a core for less of the time than this is left out
MOST_THREADS = 1024  # more crash the library that makes them (libgomp)
DOUBT = 0.05  # a share of the median from which drift, spread or contention is worth a warning
SHORTEST_S = 1e-6  # hardly any PyTorch operation takes less
COMPILED_S = 0.02  # a first call longer than this, and than ten blocks, has compiled,
SETTLE_S = 0.15  # and for so long after it calls are slower
LEAD_IN_S = 2e-3  # blocks shorter than this feel what ran before them, see `Stopwatch.lead_in`
# the most seconds of a measurement, whatever was asked for, where nobody reads the figures
QUICK_S = float(os.environ.get("COURSE_QUICK", "inf"))
MOST_COMPILING = 10  # blocks that may compile on XLA before that is called a fault of the call


@dataclass(frozen=True)
class Reading:
    """One timed block."""

    seconds: float  # of one call
    # the part of the time in which the calling thread had a core; 1 where that says nothing
    cpu_share: float = 1.0


class Stopwatch:
    """Reads the time of a function without arguments, in blocks of calls, on one device."""

    clock: Callable[[], float] = staticmethod(time.perf_counter)
    # The seconds in which this thread had a core; None where that says nothing: Windows counts them
    # in steps of 16 ms.
    cpu_clock: Callable[[], float] | None = (
        None if os.name == "nt" else staticmethod(time.thread_time)
    )

    def __init__(self, fn: Callable[[], object], device: Device):
        self.kind = kind_called(device.kind)
        if self.kind.lazy:
            start_xla()
        self.fn, self.device = fn, device
        if not self.kind.host:
            # while a device works, the thread that waits for it may well sleep
            self.cpu_clock = None
        self.calls = 1  # in a block
        self.first_s = 0.0  # of the very first call
        self.call_s = math.inf  # of one call at the end of the warm-up
        # whether the clock waited for the device that held the result of the first call
        self.waited = True
        self._run = self._run_recorded if self.kind.lazy else self._run_many

    def _read_first(self) -> None:
        wait_for(self.device)
        start = self.clock()
        result = self.fn()
        wait_for(self.device)
        self.first_s = self.clock() - start
        check_ran(result)
        # A result on another accelerator shows that the clock waited for the wrong device.
        where = getattr(result, "device", None)
        if isinstance(where, torch.device) and where.type not in ("cpu", "meta"):
            # XLA waits for all of its devices at once
            same_index = self.kind.lazy or where.index in (None, self.device.index)
            self.waited = where.type == self.device.kind and same_index

    def warm_up(self) -> None:
        """Time the first call, choose the calls in a block, and go on until the state is steady."""
        self._read_first()
        block_s = self.kind.block_s
        while (spent := self.read().seconds * self.calls) < block_s and self.calls < 10**7:
            wanted = math.ceil(1.1 * block_s * self.calls / max(spent, 1e-9))
            self.calls = max(2 * self.calls, min(20 * self.calls, wanted))
        self.call_s = spent / self.calls
        if self.first_s > COMPILED_S and self.first_s > 10 * spent:
            end = self.clock() + SETTLE_S
            while self.clock() < end:
                self.read()

    def lead_in(self) -> None:
        """Call once, uncounted, so that a short block starts with its own data in the caches."""
        if self.call_s * self.calls < LEAD_IN_S:
            result = self.fn()  # held, or XLA would leave it out
            wait_for(self.device)
            del result

    def read(self) -> Reading:
        """Time one block of calls. A block in which XLA compiled is taken again.

        Raises:
            RuntimeError: XLA's counters say that it compiles again and again, or does not run one
                program a call.
        """
        if not self.kind.lazy:
            return self._read_block()
        for _ in range(MOST_COMPILING):
            before = xla_counters()
            reading = self._read_block()
            did = xla_counters() - before
            self._check_executions(did)
            if did.compilations == 0:
                return reading
        raise RuntimeError(
            f"the call to be timed compiled a new program {MOST_COMPILING} times, so it has no "
            "steady state. A shape or a constant changes from call to call: pad to one shape, and "
            "make the constant a tensor."
        )

    def _read_block(self) -> Reading:
        wait_for(self.device)
        cpu_start = self.cpu_clock() if self.cpu_clock else 0.0
        start = self.clock()
        self._run()
        seconds = self.clock() - start
        cpu_s = self.cpu_clock() - cpu_start if self.cpu_clock else seconds
        return Reading(seconds / self.calls, cpu_s / seconds if seconds > 0 else 1.0)

    def _check_executions(self, did: XLACounters) -> None:
        # a copy runs no program
        copied = did.executions == 0 and did.to_device + did.from_device >= self.calls
        ran = f"the call to be timed ran {did.executions} programs on XLA in {self.calls} calls"
        if did.executions < self.calls and not copied:
            raise RuntimeError(f"{ran}. XLA leaves out what nobody holds: return its result.")
        if did.executions > self.calls:
            raise RuntimeError(
                f"{ran}, so it reads values or syncs in its middle. "
                "Take that out, or time the parts."
            )

    def _run_many(self) -> None:
        fn = self.fn
        for _ in repeat(None, self.calls):
            fn()
        wait_for(self.device)

    def _run_recorded(self) -> None:
        # XLA merges identical recorded calls into one, and drops those whose results nobody holds.
        for _ in repeat(None, self.calls):
            result = self.fn()
            wait_for(self.device)
        del result


def check_ran(result: object) -> None:
    """Raise TypeError if a call returned a generator or a coroutine: its work was not done."""
    if isinstance(result, Generator | Coroutine):
        result.close()
        raise TypeError(
            f"the call returned a {type(result).__name__}, and none of its work was done. "
            "Pass a function that does all of the work, such as: lambda: list(work())"
        )


@dataclass(frozen=True)
class Timing:
    """The result of repeated, synchronised measurements of one call."""

    device: str  #: where the work ran, as PyTorch writes it, such as "cpu"
    threads: int  #: how many CPU threads PyTorch could use for one operation
    first_s: float  #: seconds of the very first call, with whatever it compiled and allocated
    #: seconds per call in each timed block, in the order in which they were taken
    blocks_s: tuple[float, ...]
    calls_per_block: int  #: how many calls one block held
    #: how many more blocks were timed and left out, because another program had the core meanwhile
    left_out: int = 0
    #: why the figure is unreliable, a sentence each; empty when nothing is wrong
    warnings: tuple[str, ...] = ()

    @property
    def median_s(self) -> float:
        """Median seconds of one call in the steady state."""
        return statistics.median(self.blocks_s)

    @property
    def interval_s(self) -> tuple[float, float]:
        """The 95% confidence interval of the median; see `median_interval`."""
        return median_interval(self.blocks_s)

    @property
    def runs(self) -> int:
        """The number of timed calls behind the figures."""
        return len(self.blocks_s) * self.calls_per_block

    def __repr__(self) -> str:
        # Python before 3.13 wants two values
        blocks_s = self.blocks_s * 2 if len(self.blocks_s) == 1 else self.blocks_s
        low, _, high = statistics.quantiles(blocks_s, n=4, method="inclusive")
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        left_out = f", disturbed blocks left out: {self.left_out}" if self.left_out else ""
        figures = (
            f"{format_seconds(self.median_s)} per call on {self.device}, {threads} "
            f"(middle half {format_seconds(low)} to {format_seconds(high)}, "
            f"{self.runs} calls{left_out}; the first took {format_seconds(self.first_s)})"
        )
        return "\n".join(
            [figures, *(wrapped(f"unreliable: {warning}", 2) for warning in self.warnings)]
        )


def time_call(
    fn: Callable[[], object],
    *,
    device: Device | torch.device | str | None = None,
    threads: int | None = None,
    max_s: float = 2.0,
) -> Timing:
    """Time `fn()` until the median is known to within two per cent.

    Calls follow each other at once, so caches are as warm as the work itself leaves them. What
    changes more slowly than the timing lasts, often less than 0.1 s, does not show: the clock rate
    of the cores, or what other programs do.

    >>> timing = time_call(lambda: torch.ones(1000).sum(), device="cpu", max_s=0.05)
    >>> timing.device, timing.median_s < timing.first_s + 1
    ('cpu', True)

    Args:
        fn: the work, without arguments. It must do the same work at every call.
        device: where `fn` works, and so what to wait for; a `Device`, a `torch.device` or its name;
            None for the best one here. Name the CPU for work on the CPU of a machine with a GPU.
        threads: CPU threads for one operation while timing; None leaves the setting alone.
        max_s: stop after about this many seconds of timed work and two readings, however wide the
            interval still is.

    Returns:
        The timing, first call apart, with warnings where it is unreliable.

    Raises:
        ValueError: `max_s` or `threads` is not positive, or no machine has so many threads.
        RuntimeError: XLA compiles again and again, or does not run one program a call.
    """
    if not max_s > 0:
        raise ValueError(f"time_call needs a positive time, but got {max_s=}.")
    watch = Stopwatch(fn, as_device(device))
    with paused_gc(), using_threads(threads):
        watch.warm_up()
        readings = read_until_narrow(watch, max_s)
    return summarise(watch, readings, usable(readings), threads)


def summarise(
    watch: Stopwatch, readings: Sequence[Reading], used: Sequence[Reading], threads: int | None
) -> Timing:
    """Return the timing that the `used` readings of a stopwatch amount to.

    It was taken with `threads` as in `time_call`.
    """
    threads = threads or torch.get_num_threads()
    values = tuple(reading.seconds for reading in used)
    warnings = list(_doubts(watch.first_s, values))
    share = statistics.median_high(reading.cpu_share for reading in readings)
    if share < CLEAN:
        warnings.append(
            f"the calling thread had a core for only {share:.0%} of the time: other programs "
            "compete for the cores, or fn itself waits, for a disk or another process."
        )
    if not watch.waited:
        warnings.append(
            f"the result is not on {watch.device}, so the clock did not wait for it: "
            "pass its device."
        )
    return Timing(
        device=str(watch.device),
        threads=threads,
        first_s=watch.first_s,
        blocks_s=values,
        calls_per_block=watch.calls,
        left_out=len(readings) - len(used),
        warnings=tuple(warnings),
    )


def usable(readings: Sequence[Reading]) -> Sequence[Reading]:
    """Return the readings for which the thread kept its core, or all where those are too few."""
    clean = [reading for reading in readings if reading.cpu_share >= CLEAN]
    return clean if len(clean) >= FEWEST else readings


def read_until_narrow(watch: Stopwatch, max_s: float) -> list[Reading]:
    """Time block after block until the median of the usable ones is known to within `SPREAD`.

    It stops earlier when `max_s` seconds of timed work are spent.
    """
    readings: list[Reading] = []
    spent, max_s = 0.0, min(max_s, QUICK_S)
    while len(readings) < MAX_BLOCKS and (spent < max_s or len(readings) < 2):
        readings.append(watch.read())
        spent += readings[-1].seconds * watch.calls
        if spent >= MIN_S and len(readings) % 5 == 0 and _is_narrow(usable(readings)):
            break
    return readings


def _is_narrow(readings: Sequence[Reading]) -> bool:
    if len(readings) < MIN_BLOCKS:
        return False
    values = [reading.seconds for reading in readings]
    low, high = median_interval(values)
    return high - low <= 2 * SPREAD * statistics.median(values)


def _doubts(first_s: float, values: Sequence[float]) -> Iterator[str]:
    """Yield a warning for each reason in the figures themselves to doubt their median."""
    median = statistics.median(values)
    low, high = median_interval(values)
    if len(values) < FEWEST:
        yield (
            f"only {len(values)} readings, and a 95% interval needs {FEWEST}: "
            "raise max_s or give fn less work."
        )
    elif high - low > 2 * DOUBT * median:
        yield (
            f"the median may lie anywhere from {format_seconds(low)} to {format_seconds(high)}: "
            "raise max_s."
        )
    change = _drift(values)
    if abs(change) > DOUBT:
        word = "slower" if change > 0 else "faster"
        yield f"calls got {abs(change):.0%} {word} as it went: is all work the same?"
    if median < SHORTEST_S and first_s > 20 * SHORTEST_S:
        yield (
            "hardly any PyTorch operation is that fast: does fn do its work at the first call only?"
        )


def _drift(values: Sequence[float]) -> float:
    """Return the share by which the second half is slower, or 0 where chance explains it."""
    half = len(values) // 2
    if half < 4:
        return 0.0
    early, late = values[:half], values[half:]
    early_low, early_high = median_interval(early)
    late_low, late_high = median_interval(late)
    overlap = early_high >= late_low and late_high >= early_low
    return 0.0 if overlap else statistics.median(late) / statistics.median(early) - 1


@contextmanager
def paused_gc() -> Iterator[None]:
    """Keep Python from collecting garbage inside the block."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def using_threads(threads: int | None) -> Iterator[None]:
    """Let one operation use `threads` CPU threads inside the block; None changes nothing."""
    if threads is None:  # to set even the same number would change how MKL chooses its own
        yield
        return
    before = torch.get_num_threads()
    if not 1 <= threads <= MOST_THREADS:
        raise ValueError(f"an operation can use 1 to {MOST_THREADS} threads, but got {threads=}.")
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95% confidence interval of the median of independent readings.

    It holds for any distribution. With n values the k-th smallest and k-th largest enclose the
    median with the chance that a Binomial(n, 1/2) gives; k follows from its normal approximation
    with continuity correction. With fewer than 6 values no interval reaches 95 %, so this is the
    range. Where timing stops because the interval is narrow, 93 to 96 % hold the median
    (simulated).
    Source: J. D. Gibbons and S. Chakraborti, Nonparametric Statistical Inference, section 5.2.
    """
    ordered = sorted(values)
    k = max(0, math.floor((len(ordered) - 1 - 1.96 * math.sqrt(len(ordered))) / 2))
    return ordered[k], ordered[-1 - k]
