"""One measured or published figure, and from which size on one contestant beats the others."""

import math
import statistics
from dataclasses import dataclass

from course_utils.devices import KINDS


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """How long one call of a workload took in one size.

    Raises:
        ValueError: a kind of device that does not exist, or a number that is not positive.
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
    threads: int | None = None  #: that one operation could use on the CPU; None if not known
    #: seconds a call in each round, which the contestants of one size share; one number alone where
    #: a source says no more
    rounds_s: tuple[float, ...]
    first_s: float | None = None  #: seconds of the first call
    #: the largest difference from the CPU's fp32 answer, as a share of its largest value
    error: float | None = None
    warnings: tuple[str, ...] = ()  #: why the figure is unreliable

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind is {self.kind!r}, not one of {', '.join(KINDS)}")
        numbers = (self.size, self.items, *self.rounds_s)
        if not self.rounds_s or not all(0 < number < math.inf for number in numbers):
            raise ValueError(f"size, items and seconds have to be positive, but are {numbers}")

    @property
    def median_s(self) -> float:
        """Median seconds of a call."""
        return statistics.median(self.rounds_s)

    @property
    def rate(self) -> float:
        """Items a second."""
        return self.items / self.median_s

    @property
    def rate_quartiles(self) -> tuple[float, float]:
        """The rates between which the middle half of the rounds lies."""
        if len(self.rounds_s) < 2:
            return self.rate, self.rate
        low_s, _, high_s = statistics.quantiles(self.rounds_s, n=4, method="inclusive")
        return self.items / high_s, self.items / low_s


@dataclass(frozen=True)
class Crossover:
    """From which size on one contestant is faster than others."""

    winner: str  #: the contestant in question
    #: for each of the others, the smallest size from which the winner is faster at every larger
    #: one; None where there is none
    beats: dict[str, int | None]
    sizes: tuple[int, ...]  #: those that were measured
    doubts: int = 0  #: how many of the figures behind it are unreliable

    @property
    def size(self) -> int | None:
        """The smallest size from which on the winner beats all others; None when there is none."""
        sizes = [size for size in self.beats.values() if size]
        return max(sizes) if len(sizes) == len(self.beats) else None

    def __repr__(self) -> str:
        wins = [f"beats {loser} from {size:,} on" for loser, size in self.beats.items() if size]
        lost = [loser for loser, size in self.beats.items() if size is None]
        if lost:
            defeat = "does not beat" if len(lost) == 1 else "beats neither"
            wins.append(f"{defeat} {' nor '.join(lost)} at {max(self.sizes):,}")
        doubts = f"; {self.doubts} of the figures unreliable" if self.doubts else ""
        measured = f"measured: {min(self.sizes):,} to {max(self.sizes):,}{doubts}"
        return f"{self.winner} {' and '.join(wins)} ({measured})"
