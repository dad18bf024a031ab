"""One measured or published figure."""

import statistics
from dataclasses import dataclass

# Of sizes, items and seconds: beyond these no machine computes, and no picture is drawn.
LEAST, MOST = 1e-15, 1e30


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
    kind: str  #: of its device, such as "cpu"; one of `course_utils.kinds.KINDS`
    device: str  #: the device's name
    threads: int | None = None  #: that one operation could use on the CPU; None if not known
    #: seconds per call in each round, which the contestants of one size share; one number alone
    #: where a source says no more
    rounds_s: tuple[float, ...]
    warnings: tuple[str, ...] = ()  #: why the figure is unreliable

    def __post_init__(self) -> None:
        """Refuse what no comparison writes, since a file may come from anybody."""
        for name in ("workload", "precision", "size_name", "unit", "label", "kind", "device"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name} is {getattr(self, name)!r}, not a text")
        if not isinstance(self.threads, int | None):
            raise ValueError(f"threads is {self.threads!r}, not a number")
        if not all(isinstance(warning, str) for warning in self.warnings):
            raise ValueError(f"warnings are {self.warnings!r}, not texts")
        for name in ("size", "items", "rounds_s"):
            value = getattr(self, name)
            numbers = value if name == "rounds_s" else (value,)
            if not numbers or not all(map(_is_positive, numbers)):
                shown = repr(value)[:60]
                raise ValueError(f"{name} is {shown}, not between {LEAST:g} and {MOST:g}")

    @property
    def median_s(self) -> float:
        """Median seconds of a call."""
        return statistics.median(self.rounds_s)

    @property
    def rate(self) -> float:
        """Items per second."""
        return self.items / self.median_s

    @property
    def rate_quartiles(self) -> tuple[float, float]:
        """The rates between which the middle half of the rounds lies."""
        if len(self.rounds_s) < 2:
            return self.rate, self.rate
        low_s, _, high_s = statistics.quantiles(self.rounds_s, n=4, method="inclusive")
        return self.items / high_s, self.items / low_s


def _is_positive(number: object) -> bool:
    return isinstance(number, int | float) and LEAST < number < MOST
