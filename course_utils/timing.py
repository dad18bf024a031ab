"""Time a call on any device: wait for it, keep the first call apart, repeat, show the spread."""

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from course_utils.devices import Device, as_device
from course_utils.stopwatch import Blocks, Reading, Stopwatch, seconds_spent_queueing
from course_utils.text import format_seconds

# stop when the 95 % interval of the median reaches no further than this share of it to either side
SPREAD = 0.02
MIN_BLOCKS, MAX_BLOCKS = 20, 10_000
# Twenty blocks of a short call are over in 4 ms. The median of 7 ms of them scatters less from
# repeat to repeat, and is still had in a twentieth of the time of `blocked_autorange`
# (tests/benchmarks/timing_fidelity.py, section short).
MIN_S = 7e-3
FEWEST = 6  # fewer readings than this have no 95 % interval of the median
CLEAN = 0.97  # a block in which the thread had a core for less of the time than this is left out
MOST_THREADS = 1024  # more crash the library that makes them (libgomp)
DOUBT = 0.05  # a share of the median from which drift, spread or contention is worth a warning
# XLA spreads each call over several threads, and on few cores they queue behind one another: up to
# 0.36 was seen on two quiet cores, and 0.34 to 0.58 with two busy neighbours.
QUEUED = {"xla": 0.4}
SHORTEST_S = 1e-6  # hardly any PyTorch operation takes less


@dataclass(frozen=True)
class Timing:
    """The result of repeated, synchronised measurements of one call."""

    device: str  #: where the work ran, as PyTorch writes it, such as "cpu"
    threads: int  #: how many CPU threads PyTorch could use for one operation
    first_s: float  #: seconds of the very first call, with whatever it compiled and allocated
    #: seconds a call in each timed block, in the order in which they were taken
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
        """The 95 % confidence interval of the median; see `median_interval`."""
        return median_interval(self.blocks_s)

    @property
    def runs(self) -> int:
        """The number of timed calls behind the figures."""
        return len(self.blocks_s) * self.calls_per_block

    def __repr__(self) -> str:
        low, _, high = statistics.quantiles(self.blocks_s, n=4, method="inclusive")
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        left_out = f", disturbed blocks left out: {self.left_out}" if self.left_out else ""
        figures = (
            f"{format_seconds(self.median_s)} a call on {self.device}, {threads} "
            f"(middle half {format_seconds(low)} to {format_seconds(high)}, "
            f"{self.runs} calls{left_out}; the first took {format_seconds(self.first_s)})"
        )
        return "\n".join([figures, *(f"  unreliable: {warning}" for warning in self.warnings)])


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
        queued_s, ran_s = seconds_spent_queueing(), time.process_time()
        readings = read_until_narrow(watch, max_s)
        queued_s, ran_s = seconds_spent_queueing() - queued_s, time.process_time() - ran_s
    queued = queued_s / (queued_s + ran_s or 1)
    return summarise(watch.blocks(readings, usable(readings)), threads, queued)


def summarise(blocks: Blocks, threads: int | None, queued: float = 0.0) -> Timing:
    """Return the timing that blocks amount to, taken with `threads` as in `time_call`.

    `queued` is the share of the time for which this process's threads wanted a core in which they
    queued for one.
    """
    threads = threads or torch.get_num_threads()
    values = tuple(reading.seconds for reading in blocks.used)
    warnings = list(_doubts(blocks.first_s, values))
    warnings += _disturbances(blocks, threads, queued)
    if not blocks.waited:
        warnings.append(
            f"the result is not on {blocks.device}, so the clock did not wait for it: "
            "pass its device."
        )
    return Timing(
        device=str(blocks.device),
        threads=threads,
        first_s=blocks.first_s,
        blocks_s=values,
        calls_per_block=blocks.calls,
        left_out=len(blocks.readings) - len(blocks.used),
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
    spent = 0.0
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


def _disturbances(blocks: Blocks, threads: int, queued: float) -> Iterator[str]:
    """Yield a warning where other programs competed for the cores."""
    kind = blocks.device.kind
    # If no thread was queued, fn itself was waiting.
    counted = blocks.used if queued > DOUBT else blocks.readings
    share = statistics.median_high(reading.cpu_share for reading in counted)
    others_matter = threads > 1 or kind != "cpu"
    if share < CLEAN:
        yield (
            f"the calling thread had a core for only {share:.0%} of the time: other programs "
            "compete for the cores, or fn itself waits, for a disk or another process."
        )
    elif others_matter and queued > QUEUED.get(kind, DOUBT):
        yield (
            "other programs compete for the cores: this process's threads got one for only "
            f"{1 - queued:.0%} of the time for which they wanted one."
        )


def _doubts(first_s: float, values: Sequence[float]) -> Iterator[str]:
    """Yield a warning for each reason in the figures themselves to doubt their median."""
    median = statistics.median(values)
    low, high = median_interval(values)
    if len(values) < FEWEST:
        yield (
            f"only {len(values)} readings, and a 95 % interval needs {FEWEST}: "
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
    before = torch.get_num_threads()
    if threads is not None and not 1 <= threads <= MOST_THREADS:
        raise ValueError(f"an operation can use 1 to {MOST_THREADS} threads, but got {threads=}.")
    torch.set_num_threads(threads or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % confidence interval of the median of independent readings.

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
