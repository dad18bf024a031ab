"""One measured or published figure."""

import statistics
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """The time of one call of a workload in one size."""

    workload: str  #: its name, such as "CNN step"
    precision: str  #: such as "fp32"
    size: int  #: of the work
    size_name: str  #: what the size counts, such as "batch"
    unit: str  #: what a rate counts, such as "samples"
    items: float  #: how many of these one call does
    label: str  #: the contestant, such as "cpu, 1 thread"
    kind: str  #: of its device, such as "cpu"; one of `course_utils.hardware.KINDS`
    device: str  #: the device's name
    threads: int | None = None  #: that one operation could use on the CPU; None if not known
    #: seconds a call in each round, which the contestants of one size share; one number alone where
    #: a source says no more
    rounds_s: tuple[float, ...]
    warnings: tuple[str, ...] = ()  #: why the figure is unreliable

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
