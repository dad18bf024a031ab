"""One measured or published figure, and what two contestants' figures say about who is faster."""

import math
import statistics
from dataclasses import dataclass

from course_utils.devices import KINDS


@dataclass(frozen=True)
class Measurement:
    """How long one call of a workload took in one size.

    Raises:
        ValueError: a number that cannot be, or a median that is not the median of its rounds.
    """

    workload: str  #: its name, such as "CNN step"
    precision: str  #: such as "fp32"
    size: int  #: of the work
    size_name: str  #: what the size counts, such as "batch"
    unit: str  #: what a rate counts, such as "samples"
    items: float  #: how many of these one call does
    label: str  #: the contestant, such as "cpu, 1 thread"
    kind: str  #: of its device, such as "cpu"; one of `devices.KINDS`
    device: str  #: what a person calls the device
    threads: int | None  #: CPU threads that one operation could use; None where that is not known
    median_s: float  #: seconds a call
    #: 95 % confidence interval of the median; None where it is not known
    interval_s: tuple[float, float] | None = None
    #: seconds a call in each round, which the contestants of one size share
    rounds_s: tuple[float, ...] = ()
    first_s: float | None = None  #: seconds of the first call
    #: the largest difference from the CPU's fp32 answer, as a share of its largest value
    error: float | None = None
    warnings: tuple[str, ...] = ()  #: why the figure is not to be trusted

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind is {self.kind!r}, not one of {', '.join(KINDS)}")
        numbers = (
            self.size,
            self.items,
            self.median_s,
            self.threads,
            self.first_s,
            *(self.interval_s or ()),
        )
        if odd := [n for n in (*numbers, *self.rounds_s) if n is not None and not 0 < n < math.inf]:
            raise ValueError(f"sizes, counts and seconds are positive, but one is {odd[0]}")
        if self.error is not None and not 0 <= self.error < math.inf:
            raise ValueError(f"error is {self.error}, which is not a share of a value")
        if self.rounds_s and not math.isclose(
            self.median_s, statistics.median(self.rounds_s), rel_tol=1e-6
        ):
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
    """From which size on one contestant is faster than others."""

    winner: str  #: the contestant in question
    #: for each of the others, the smallest size from which the winner is faster at every larger
    # one; else None
    beats: dict[str, int | None]
    sizes: tuple[int, ...]  #: those that were measured
    doubts: int = 0  #: how many of the figures behind it are not to be trusted

    @property
    def size(self) -> int | None:
        """The smallest size from which on the winner beats all others; None when there is none."""
        return (
            None
            if None in self.beats.values()
            else max(size for size in self.beats.values() if size)
        )

    def __repr__(self) -> str:
        wins = [f"beats {loser} from {size:,} on" for loser, size in self.beats.items() if size]
        if lost := [loser for loser, size in self.beats.items() if size is None]:
            defeat = "does not beat" if len(lost) == 1 else "beats neither"
            wins.append(f"{defeat} {' nor '.join(lost)} at {max(self.sizes):,}")
        doubts = f"; {self.doubts} of the figures not to be trusted" if self.doubts else ""
        return f"{self.winner} {' and '.join(wins)} (measured: {min(self.sizes):,} to {max(self.sizes):,}{doubts})"
