"""One measured or published figure, and what two contestants' figures say about who is faster."""

import math
import statistics
from dataclasses import dataclass

from course_utils.devices import KINDS


@dataclass(frozen=True)
class Measurement:
    """How long one call of a workload took in one size.

    Attributes:
        workload: its name, such as "CNN step".
        precision: such as "fp32".
        size: of the work.
        size_name: what the size counts, such as "batch".
        unit: what a rate counts, such as "samples".
        items: how many of these one call does.
        label: the contestant, such as "cpu, 1 thread".
        kind: of its device, such as "cpu"; one of `devices.KINDS`.
        device: what a person calls the device.
        threads: CPU threads that one operation could use; None where that is not known.
        median_s: seconds a call.
        interval_s: 95 % confidence interval of the median; None where it is not known.
        rounds_s: seconds a call in each round, which the contestants of one size share; empty when not known.
        first_s: seconds of the first call.
        error: the largest difference from the CPU's fp32 answer, as a share of its largest value.
        warnings: why the figure is not to be trusted.

    Raises:
        ValueError: a number that cannot be, or a median that is not the median of its rounds.
    """

    workload: str
    precision: str
    size: int
    size_name: str
    unit: str
    items: float
    label: str
    kind: str
    device: str
    threads: int | None
    median_s: float
    interval_s: tuple[float, float] | None = None
    rounds_s: tuple[float, ...] = ()
    first_s: float | None = None
    error: float | None = None
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind is {self.kind!r}, not one of {', '.join(KINDS)}")
        maybe = (self.threads, self.first_s, *(self.interval_s or ()))
        numbers = (self.size, self.items, self.median_s, *self.rounds_s, *(n for n in maybe if n is not None))
        if odd := [number for number in numbers if not 0 < number < math.inf]:
            raise ValueError(f"sizes, counts and seconds are positive, but one is {odd[0]}")
        if self.error is not None and not 0 <= self.error < math.inf:
            raise ValueError(f"error is {self.error}, which is not a share of a value")
        if self.rounds_s and not math.isclose(self.median_s, statistics.median(self.rounds_s), rel_tol=1e-6):
            raise ValueError(f"median_s is {self.median_s}, which is not the median of rounds_s")

    @property
    def rate(self) -> float:
        """Items a second."""
        return self.items / self.median_s

    @property
    def rate_quartiles(self) -> tuple[float, float]:
        """The rates between which the middle half of the rounds lies."""
        if len(self.rounds_s) < 2:
            return self.rate, self.rate
        low, _, high = statistics.quantiles(self.rounds_s, n=4, method="inclusive")
        return self.items / high, self.items / low


@dataclass(frozen=True)
class Crossover:
    """From which size on one contestant is faster than others.

    Attributes:
        winner: the contestant in question.
        beats: for each of the others, the smallest measured size from which the winner is faster at every larger one;
            None when it is not faster at the largest.
        sizes: those that were measured.
        doubts: how many of the figures behind it are not to be trusted.
    """

    winner: str
    beats: dict[str, int | None]
    sizes: tuple[int, ...]
    doubts: int = 0

    @property
    def size(self) -> int | None:
        """The smallest size from which on the winner beats all others; None when there is none."""
        return None if None in self.beats.values() else max(size for size in self.beats.values() if size)

    def __repr__(self) -> str:
        lost = " nor ".join(loser for loser, size in self.beats.items() if size is None)
        wins = [f"beats {loser} from {size:,} on" for loser, size in self.beats.items() if size]
        wins += (
            [f"{'beats neither' if ' nor ' in lost else 'does not beat'} {lost} at {max(self.sizes):,}"] if lost else []
        )
        doubts = f"; {self.doubts} of the figures not to be trusted" if self.doubts else ""
        return f"{self.winner} {' and '.join(wins)} (measured: {min(self.sizes):,} to {max(self.sizes):,}{doubts})"
