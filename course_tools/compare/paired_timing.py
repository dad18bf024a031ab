"""Compare calls fairly: time them alternately, forwards and backwards, and compare neighbours.

Timing one function after the other compares the machine at two different times. Here every round
runs each of them once, and the rounds go A B C, C B A, C B A, A B C, so that whatever slows the
machine slows them alike, and none is always the first. Each round gives one ratio, and the median
counts. The mean of a round there and a round back would carry every disturbance into twice as many
ratios: the median over single rounds was closer to 1 for equal functions.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import torch

from course_utils.devices import Device, as_device
from course_utils.timing import (
    CLEAN,
    FEWEST,
    QUICK_S,
    Reading,
    Stopwatch,
    Timing,
    median_interval,
    paused_gc,
    summarise,
    using_threads,
)

MIN_ROUNDS, MAX_ROUNDS = 40, 800
# stop when the 95% interval of every ratio reaches no further than this to either side
PRECISION = 0.005


@dataclass(frozen=True)
class TimedCall:
    """A call to compare with others."""

    fn: Callable[[], object]  # without arguments
    device: Device | torch.device | str | None  # where it runs; None for the best one
    threads: int | None = None  # CPU threads for one operation; None for the number that is set


@dataclass(frozen=True)
class Ratio:
    """The ratio of the times of two calls."""

    median: float  # over the rounds
    # 95% confidence interval of the median; equal calls differ by up to 0.4 % besides, which no
    # rounds average out
    interval: tuple[float, float]
    rounds: int

    def __repr__(self) -> str:
        low, high = self.interval
        interval = f"95% interval {low:.3f} to {high:.3f}"
        return f"{self.median:.3f} times as long ({interval}, {self.rounds} rounds)"


def ratio_of_rounds(these: Sequence[float], those: Sequence[float]) -> Ratio:
    """Return how many times as long `these` took as `those`: seconds per call, of the same rounds.

    Raises:
        ValueError: the two are not of the same rounds, or there are none.
    """
    if len(these) != len(those) or not these:
        raise ValueError(
            f"a ratio needs the same rounds of both, but got {len(these)} and {len(those)} of them."
        )
    ratios = [this / that for this, that in zip(these, those, strict=True)]
    return Ratio(statistics.median(ratios), median_interval(ratios), len(ratios))


@dataclass(frozen=True)
class Together:
    """The timings of several calls that were timed alternately."""

    timings: dict[str, Timing]  #: one block a round each; the rounds are the same for all

    def ratio(self, this: str, that: str) -> Ratio:
        """Return how many times as long `this` took as `that`."""
        return ratio_of_rounds(self.timings[this].blocks_s, self.timings[that].blocks_s)


def time_together(
    works: Mapping[str, TimedCall | Callable[[], object]],
    *,
    device: Device | torch.device | str | None = None,
    max_s: float = 4.0,
) -> Together:
    """Time several calls alternately until their ratios are known to within half a per cent.

    >>> numbers = torch.rand(1000)
    >>> works = {"sum": lambda: numbers.sum(), "sort": lambda: numbers.sort()}
    >>> found = time_together(works, device="cpu", max_s=0.05)
    >>> found.ratio("sort", "sum").median > 0
    True

    Args:
        works: the contestants by name, at least one: functions without arguments, as `time_call`
            takes them. A `TimedCall`, from this module, has a device and a number of threads of its
            own.
        device: where the functions work, as in `time_call`.
        max_s: stop after about this many seconds of timed work, but not before six rounds.

    Raises:
        ValueError: there is nothing to time, or no time to do it.
        ValueError, RuntimeError: as `time_call` does.
    """
    if not works or not max_s > 0:
        raise ValueError(
            f"time_together needs work and a positive time, but got {len(works)} works, {max_s=}."
        )
    device = as_device(device)
    calls: dict[str, TimedCall] = {}
    for name, work in works.items():
        calls[name] = work if isinstance(work, TimedCall) else TimedCall(work, device)
    watches = {name: Stopwatch(call.fn, as_device(call.device)) for name, call in calls.items()}
    with paused_gc():
        for name, watch in watches.items():
            with using_threads(calls[name].threads):
                watch.warm_up()
        _share_block_size(watches)
        readings = _read_alternately(calls, watches, max_s)
    used = _usable_rounds(readings)
    timings = {}
    for name, call in calls.items():
        timings[name] = summarise(watches[name], readings[name], used[name], call.threads)
    return Together(timings)


def _share_block_size(watches: dict[str, Stopwatch]) -> None:
    """Give contestants of about the same size blocks of the same number of calls.

    A block costs a microsecond beside its calls. Shared by two calls on one side and by three on
    the other, it made two equal functions differ by up to a per cent.
    """
    found = [(watch.call_s, watch.calls) for watch in watches.values()]
    for watch in watches.values():
        shortest_s, longest_s = watch.call_s / 4, watch.call_s * 4
        watch.calls = max(calls for call_s, calls in found if shortest_s <= call_s <= longest_s)


def _read_alternately(
    calls: Mapping[str, TimedCall], watches: dict[str, Stopwatch], max_s: float
) -> dict[str, list[Reading]]:
    readings: dict[str, list[Reading]] = {name: [] for name in calls}
    spent, rounds, max_s = 0.0, 0, min(max_s, QUICK_S)
    while rounds < MAX_ROUNDS and (spent < max_s or rounds < FEWEST or rounds % 2):
        for name in watches if rounds % 4 in (0, 3) else reversed(watches):
            with using_threads(calls[name].threads):
                watches[name].lead_in()
                readings[name].append(watches[name].read())
        rounds += 1
        spent += sum(readings[name][-1].seconds * watch.calls for name, watch in watches.items())
        if rounds % 10 == 0 and _is_narrow(_usable_rounds(readings)):
            break
    return readings


def _is_narrow(rounds: Mapping[str, Sequence[Reading]]) -> bool:
    taken = [[reading.seconds for reading in readings] for readings in rounds.values()]
    if len(taken[0]) < MIN_ROUNDS:
        return False
    for these, those in combinations(taken, 2):
        ratio = ratio_of_rounds(these, those)
        low, high = ratio.interval
        if high - low > 2 * PRECISION * ratio.median:
            return False
    return True


def _usable_rounds(readings: Mapping[str, Sequence[Reading]]) -> dict[str, list[Reading]]:
    """Return the rounds in which every contestant kept its core, or all where those are too few."""
    rounds = list(zip(*readings.values(), strict=True))
    clean = [round_ for round_ in rounds if all(reading.cpu_share >= CLEAN for reading in round_)]
    kept = clean if len(clean) >= FEWEST else rounds
    return {name: [round_[column] for round_ in kept] for column, name in enumerate(readings)}
