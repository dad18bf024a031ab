"""What a comparison of devices found: its rows, who is faster from which size on, and the same as a table."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from course_utils.paired import Ratio, ratio_of_rounds


@dataclass(frozen=True)
class Row:
    """What one contestant did with one size.

    Attributes:
        size: of the work.
        label: the contestant, such as "cpu, 1 thread".
        kind: of its device, such as "cpu".
        device: what a person calls the device.
        threads: CPU threads that one operation could use.
        first_s: seconds of the first call.
        rounds_s: seconds a call in each round; the same rounds for all contestants of a size.
        items: how many samples, FLOP or elements one call does.
        error: the largest difference from the CPU's fp32 answer, as a share of its largest value.
        warnings: why the figure is not to be trusted.
    """

    size: int
    label: str
    kind: str
    device: str
    threads: int
    first_s: float
    rounds_s: tuple[float, ...]
    items: float
    error: float
    warnings: tuple[str, ...] = ()

    @property
    def median_s(self) -> float:
        """Median seconds of one call."""
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
        low, _, high = statistics.quantiles(self.rounds_s, n=4, method="inclusive")
        return self.items / high, self.items / low


@dataclass(frozen=True)
class Crossover:
    """From which size on one contestant is faster than another.

    Attributes:
        winner: the contestant in question.
        loser: the one it is compared with.
        size: the smallest measured size from which it wins at every larger one; None when it does not.
        sizes: those that were measured.
        doubts: how many of the figures behind it are not to be trusted.
    """

    winner: str
    loser: str
    size: int | None
    sizes: tuple[int, ...]
    doubts: int = 0

    def __repr__(self) -> str:
        measured = f"measured: {min(self.sizes):,} to {max(self.sizes):,}"
        if self.doubts:
            measured += f"; {self.doubts} of the figures {'is' if self.doubts == 1 else 'are'} not to be trusted"
        if self.size is None:
            return f"{self.winner} does not beat {self.loser} for good at any size ({measured})"
        return f"{self.winner} beats {self.loser} from {self.size:,} on ({measured})"


@dataclass(frozen=True)
class Comparison:
    """The same work in several sizes on several devices.

    Attributes:
        workload: its name.
        size_name: what a size counts.
        unit: what a rate counts.
        precision: of the numbers.
        tf32: whether float32 products on NVIDIA GPUs could round to TF32.
        rows: the measurements, size by size.
        made: date, versions and machine.
    """

    workload: str
    size_name: str
    unit: str
    precision: str
    tf32: bool
    rows: tuple[Row, ...]
    made: dict[str, str] = field(default_factory=dict)

    @property
    def labels(self) -> list[str]:
        """The contestants."""
        return list(dict.fromkeys(row.label for row in self.rows))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes, smallest first."""
        return tuple(sorted({row.size for row in self.rows}))

    def rows_of(self, label: str) -> list[Row]:
        """Return the rows of one contestant, smallest size first.

        Raises:
            ValueError: there is no such contestant.
        """
        if label not in self.labels:
            raise ValueError(f"{label!r} was requested, but this comparison has {', '.join(map(repr, self.labels))}.")
        return sorted((row for row in self.rows if row.label == label), key=lambda row: row.size)

    def speedup(self, this: str, that: str, size: int) -> Ratio:
        """Return how many times as fast `this` is as `that` at a size, from the rounds that they shared.

        Raises:
            ValueError: there is no such contestant or size.
        """
        found = {row.size: row for row in self.rows_of(this)}, {row.size: row for row in self.rows_of(that)}
        if any(size not in rows for rows in found):
            raise ValueError(f"size {size} was requested, but measured were {', '.join(map(str, self.sizes))}.")
        return ratio_of_rounds(found[1][size].rounds_s, found[0][size].rounds_s)

    def crossover(self, this: str | None = None, that: str | None = None) -> Crossover:
        """Return from which size on `this` is faster than `that`, by more than the noise.

        Args:
            this: a contestant; None for the first that is not the CPU, or the CPU with the most threads.
            that: another; None for the CPU with whatever number of threads is faster.

        Raises:
            ValueError: there are not two to compare.
        """
        cpus = [row.label for row in self.rows if row.kind == "cpu"]
        others = [label for label in self.labels if label not in cpus]
        this = this or next(iter([*others, *reversed(self.labels)]), None)
        rivals = [that] if that else [label for label in dict.fromkeys(cpus or self.labels) if label != this]
        if this is None or not rivals:
            raise ValueError(f"a crossover needs two contestants, but this has {', '.join(self.labels) or 'none'}.")
        wins = None
        for size in reversed(self.sizes):
            if any(self.speedup(this, rival, size).interval[0] <= 1 for rival in rivals):
                break
            wins = size
        doubts = sum(bool(row.warnings) for label in (this, *rivals) for row in self.rows_of(label))
        return Crossover(this, " and ".join(rivals), wins, self.sizes, doubts)

    def to_frame(self):
        """Return a pandas DataFrame with one line for each size and contestant."""
        import pandas as pd

        base = self.labels[0]
        lines = []
        for row in self.rows:
            faster = self.speedup(row.label, base, row.size)
            lines.append(
                {
                    self.size_name: row.size,
                    "device": row.label,
                    "median ms": row.median_s * 1e3,
                    f"{self.unit}/s": row.rate,
                    f"times {base}": faster.median,
                    "95 % interval": f"{faster.interval[0]:.2f} to {faster.interval[1]:.2f}",
                    "first call ms": row.first_s * 1e3,
                    "largest error": row.error,
                    "trusted": not row.warnings,
                }
            )
        return pd.DataFrame(lines)

    def plot(self, recordings: Sequence = ()):
        """Return the picture of the rates against the sizes; see `charts.plot_rates`."""
        from course_utils.compare.charts import plot_rates

        return plot_rates(self, recordings)

    def save(self, path) -> None:
        """Write it as JSON; see `results_file.save`."""
        from course_utils.compare import results_file

        results_file.save(self, path)

    @staticmethod
    def load(path) -> "Comparison":
        """Read what `save` wrote; see `results_file.load`."""
        from course_utils.compare import results_file

        return results_file.load(path)

    def __repr__(self) -> str:
        doubts = sum(bool(row.warnings) for row in self.rows)
        return (
            f"{self.workload} in {self.precision}{' with TF32 allowed' if self.tf32 else ''}: {len(self.sizes)} sizes, "
            f"{len(self.labels)} contestants ({'; '.join(self.labels)}), "
            + (f"{doubts} of {len(self.rows)} figures not to be trusted" if doubts else "all figures trusted")
        )
