"""Compare calls fairly: time them in turn, forwards and backwards, and compare neighbours with neighbours.

Timing one function after the other compares the machine at two different times. Here every round runs each of them
once, and the rounds go A B C, C B A, C B A, A B C, so that whatever slows the machine slows them alike, and none is
always the first. Each round gives one ratio, and the median counts. The mean of a round there and a round back would
carry every disturbance into twice as many ratios: the median over single rounds was closer to 1 for equal functions.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from course_utils.devices import Device
from course_utils.stopwatch import Reading, Stopwatch
from course_utils.timing import CLEAN, FEWEST, Timing, make_timing, median_interval, paused_gc, using_threads

MIN_ROUNDS, MAX_ROUNDS = 40, 800
PRECISION = 0.005  # stop when the 95 % interval of every ratio reaches no further than this to either side


@dataclass(frozen=True)
class Work:
    """A call to compare with others."""

    fn: Callable[[], object]  # without arguments
    device: Device  # where it runs
    threads: int | None = None  # CPU threads for one operation; None for the number that is set


@dataclass(frozen=True)
class Ratio:
    """How many times as long one call took as another."""

    median: float  # over the rounds
    interval: tuple[float, float]  # 95 % confidence interval of the median
    rounds: int

    def __repr__(self) -> str:
        low, high = self.interval
        return f"{self.median:.3f} times ({low:.3f} to {high:.3f}, {self.rounds} rounds)"


def ratio_of_rounds(these: Sequence[float], those: Sequence[float]) -> Ratio:
    """Return how many times as long `these` took as `those`, round by round.

    Args:
        these: seconds of each round.
        those: seconds of the same rounds.

    Raises:
        ValueError: the two are not of the same rounds, or there are none.
    """
    if len(these) != len(those) or not these:
        raise ValueError(f"a ratio needs the same rounds of both, but got {len(these)} and {len(those)} of them.")
    ratios = [this / that for this, that in zip(these, those, strict=True)]
    return Ratio(statistics.median(ratios), median_interval(ratios), len(ratios))


@dataclass(frozen=True)
class Together:
    """What timing several calls in turn found."""

    timings: dict[str, Timing]
    rounds_s: dict[str, tuple[float, ...]]  # seconds a call in each round; the rounds are the same for all

    def ratio(self, this: str, that: str) -> Ratio:
        """Return how many times as long `this` took as `that`."""
        return ratio_of_rounds(self.rounds_s[this], self.rounds_s[that])


def time_together(
    works: Mapping[str, Work], *, max_s: float = 4.0, between_rounds: Callable[[], None] = lambda: None
) -> Together:
    """Time several calls in turn until their ratios are known to within half a per cent.

    Args:
        works: the contestants by name, at least one.
        max_s: stop after about this many seconds of timed work.
        between_rounds: called before each round, outside the timed parts; it may raise to end the comparison.

    Raises:
        ValueError: there is nothing to time, or no time to do it.
        RuntimeError: as `time_call` does.
    """
    if not works or not max_s > 0:
        raise ValueError(f"time_together needs work and a positive time, but got {len(works)} works, max_s={max_s}.")
    watches = {name: Stopwatch(work.fn, work.device) for name, work in works.items()}
    with paused_gc():
        for name, watch in watches.items():
            with using_threads(works[name].threads):
                watch.read_first()
                watch.warm_up()
        _share_block_size(watches)
        rounds = _rounds_until_narrow(works, watches, max_s, between_rounds)
    timings = {}
    for name, watch in watches.items():
        with using_threads(works[name].threads):
            timings[name] = make_timing(watch, [round_[name] for round_ in rounds])
    kept = _usable_rounds(rounds)
    return Together(timings, {name: tuple(round_[name].seconds for round_ in kept) for name in works})


Round = dict[str, Reading]


def _share_block_size(watches: dict[str, Stopwatch]) -> None:
    """Give contestants of about the same size blocks of the same number of calls.

    A block costs a microsecond beside its calls. Shared by two calls on one side and by three on the other, it made
    two equal functions differ by up to a per cent.
    """
    found = [(watch.call_s, watch.calls) for watch in watches.values()]
    for watch in watches.values():
        watch.calls = max(calls for call_s, calls in found if watch.call_s / 4 <= call_s <= watch.call_s * 4)


def _rounds_until_narrow(
    works: Mapping[str, Work], watches: dict[str, Stopwatch], max_s: float, between: Callable[[], None]
) -> list[Round]:
    rounds: list[Round] = []
    spent = 0.0
    while len(rounds) < MAX_ROUNDS and (spent < max_s or len(rounds) < 4 or len(rounds) % 2):
        between()
        readings: Round = {}
        for name in watches if len(rounds) % 4 in (0, 3) else reversed(watches):
            with using_threads(works[name].threads):
                watches[name].lead_in()
                readings[name] = watches[name].read()
        rounds.append(readings)
        spent += sum(reading.seconds * watches[name].calls for name, reading in readings.items())
        if len(rounds) % 10 == 0 and _is_narrow(_usable_rounds(rounds)):
            break
    return rounds


def _is_narrow(rounds: list[Round]) -> bool:
    if len(rounds) < MIN_ROUNDS:
        return False
    first, *others = rounds[0]
    base = [round_[first].seconds for round_ in rounds]
    ratios = [ratio_of_rounds([round_[name].seconds for round_ in rounds], base) for name in others]
    return all(ratio.interval[1] - ratio.interval[0] <= 2 * PRECISION * ratio.median for ratio in ratios)


def _usable_rounds(rounds: list[Round]) -> list[Round]:
    """Return the rounds in which every contestant kept its core, or all when those are too few."""
    clean = [round_ for round_ in rounds if all(reading.cpu_share >= CLEAN for reading in round_.values())]
    return clean if len(clean) >= FEWEST else rounds
