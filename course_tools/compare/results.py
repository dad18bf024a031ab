"""Results: what was measured or published, as a table, a picture and a file.

A file is JSON, `{"schema": ..., "version": 2, ...}` with the attributes of `Result` and of
`Measurement` under their own names.
"""

import datetime
import json
import math
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

import course_utils
from course_tools.compare.measurement import Measurement
from course_tools.compare.paired_timing import PRECISION, Ratio, ratio_of_rounds
from course_utils.atomic_write import write_atomically
from course_utils.hardware.machine import cpu_name, version_of
from course_utils.hardware.nvidia import read_driver
from course_utils.units import format_count

if TYPE_CHECKING:
    import pandas as pd

    from course_tools.figures import Picture

SCHEMA = {"schema": "accelerator-course result", "version": 2}


@dataclass(frozen=True)
class Result:
    """A set of measured or published figures, and how they were obtained."""

    measurements: tuple[Measurement, ...] = ()  #: the figures
    origin: Literal["measured", "published"] = "measured"  #: with this course, or by others
    date: str = ""  #: when, as 2026-11-21
    command: str = ""  #: what measured it, if that was a command
    source: str = ""  #: where it was published
    detail: str = ""  #: what else there is to know
    #: of Python, PyTorch, CUDA, the driver, and so on
    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, str] = field(default_factory=dict)  #: the CPU and the operating system

    def __post_init__(self) -> None:
        """Refuse what no comparison writes, since a file may come from anybody."""
        for name in ("origin", "date", "command", "source", "detail"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name} is {getattr(self, name)!r}, not a text")
        for name in ("versions", "machine"):
            if not isinstance(getattr(self, name), dict):
                raise ValueError(f"{name} is {getattr(self, name)!r}, not a dictionary")

    @property
    def labels(self) -> list[str]:
        """The contestants."""
        return list(dict.fromkeys(one.label for one in self.measurements))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes, smallest first."""
        return tuple(sorted({one.size for one in self.measurements}))

    @property
    def work(self) -> Measurement:
        """The first measurement, which says what the work was.

        Raises:
            ValueError: nothing has been measured, or several kinds of work.
        """
        kinds = {(one.workload, one.precision) for one in self.measurements}
        if len(kinds) != 1:
            raise ValueError(
                f"one kind of work was requested, but this result holds {len(kinds)} of them."
            )
        return self.measurements[0]

    def of(self, label: str) -> list[Measurement]:
        """Return the measurements of one contestant, smallest size first."""
        found = [one for one in self.measurements if one.label == label]
        return sorted(found, key=lambda one: one.size)

    def verdict(self) -> str:
        """Return at which size the fastest accelerator, or the CPU with the most threads, is
        faster than the CPU, in 45 characters or fewer; of a single contestant, nothing.
        """
        if not self.measurements:
            return ""
        winner, rivals = self._best_and_rivals()
        if not rivals:
            return ""
        if doubt := self._doubt((winner, *rivals)):
            return doubt
        size = max(self._wins_from(winner, rival) for rival in rivals)
        if size == math.inf:
            return f"{winner} does not win at {self.sizes[-1]:,}"
        if size == self.sizes[0]:
            return f"{winner}: faster at every size"
        # a picture's title has room for so many digits
        shown_size = f"{size:,}" if size < 100_000 else format_count(size)
        return f"{winner}: faster at {shown_size} and above"

    def _best_and_rivals(self) -> tuple[str, list[str]]:
        """Return who may win, an accelerator if there is one, and the CPUs to win against."""
        cpus = [label for label in self.labels if self.of(label)[0].kind == "cpu"]
        others = [label for label in self.labels if label not in cpus]
        best = max(others, key=self._best_at_the_end) if others else self.labels[-1]
        return best, [label for label in cpus or self.labels if label != best]

    def _doubt(self, labels: Sequence[str]) -> str:
        """Return why unreliable points of these contestants allow no verdict, or ""."""
        shown = [one for one in self.measurements if one.label in labels]
        doubtful = [one for one in shown if one.warnings]
        if 2 * len(doubtful) >= len(shown):
            return f"Not sure: {len(doubtful)} of {len(shown)} points are unreliable"
        if any(one.size == self.sizes[-1] for one in doubtful):
            return f"Not sure: a point at {self.sizes[-1]:,} is unreliable"
        return ""

    def _best_at_the_end(self, label: str) -> tuple[int, float]:
        """Return the largest size of a contestant and its rate there, which decide who is first."""
        last = self.of(label)[-1]
        return last.size, last.rate

    def _wins_from(self, winner: str, rival: str) -> float:
        """Return the smallest size from which on the winner is faster, or infinity. A size with an
        unreliable point does not count as won.
        """
        theirs = {one.size: one for one in self.of(rival)}
        size = math.inf
        for mine in self.of(winner):
            other = theirs.get(mine.size)
            times = times_as_fast(mine.rounds_s, other.rounds_s if other else ())
            doubtful = mine.warnings or (other and other.warnings)
            # equal calls can differ by less than the precision
            if times is None or doubtful or times.interval[0] <= 1 + PRECISION:
                size = math.inf
            elif size == math.inf:
                size = mine.size
        return size

    def to_frame(self) -> "pd.DataFrame":
        """Return a pandas table with one line for each size and contestant."""
        import pandas as pd

        work, first = self.work, self.labels[0]
        base = {one.size: one.rounds_s for one in self.of(first)}
        lines = []
        for one in self.measurements:
            times = times_as_fast(one.rounds_s, base.get(one.size, ()))
            line = {
                work.size_name: one.size,
                "device": one.label,
                "median ms": one.median_s * 1e3,
                f"{work.unit}/s": one.rate,
                f"times {first}": times.median if times else math.nan,
                "95% interval": "{:.2f} to {:.2f}".format(*times.interval) if times else "",
                "reliable": not one.warnings,
            }
            lines.append(line)
        return pd.DataFrame(lines)

    def plot(self, elsewhere: Sequence["Result"] = (), title: str = "") -> "Picture":
        """Draw each contestant's rate against the size.

        Args:
            elsewhere: results of the same work from other machines, drawn dashed.
            title: what the picture shows, in at most 45 characters; by default the verdict.

        Raises:
            ValueError: nothing has been measured yet, or several kinds of work.
        """
        for result in elsewhere:
            if _kind_of(result.work) != _kind_of(self.work):
                raise ValueError(
                    f"a picture shows one kind of work, but {_kind_of(self.work)} was measured "
                    f"here and {_kind_of(result.work)} elsewhere. Pass results of the same work."
                )
        # here, since a result is of use without matplotlib
        from course_tools.compare.charts import plot_rates

        work, dashed = self.work, []
        for result in elsewhere:
            for label in result.labels:
                name = f"{label} ({result.origin})"
                dashed.append([replace(one, label=name) for one in result.of(label)])
        lines = [self.of(label) for label in self.labels]
        title = title or self.verdict() or f"{work.workload} ({work.precision})"
        return plot_rates(lines, title, dashed=dashed)

    def save(self, path: str | os.PathLike) -> None:
        """Write the result as a JSON file."""
        text = json.dumps(SCHEMA | asdict(self), ensure_ascii=False, indent=1)
        write_atomically(Path(path), text + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Result":
        """Read what `save` wrote.

        Raises:
            OSError: there is no such file, or it cannot be read.
            ValueError: it is not a result, or one of another version of the course.
        """
        try:
            content = json.loads(Path(path).read_bytes())
            schema = {name: content.pop(name, None) for name in SCHEMA}
            if schema != SCHEMA:
                raise ValueError(f"its schema and version are {schema}, not {SCHEMA}")
            measurements = []
            for each in content.pop("measurements"):
                rounds_s, warnings = tuple(each.pop("rounds_s")), tuple(each.pop("warnings"))
                measurements.append(Measurement(**each, rounds_s=rounds_s, warnings=warnings))
            return cls(tuple(measurements), **content)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(
                f"{Path(path).name} is not a result that this course can read: {error}"
            ) from error

    def __repr__(self) -> str:
        works = dict.fromkeys(f"{one.workload} in {one.precision}" for one in self.measurements)
        doubts = sum(bool(one.warnings) for one in self.measurements)
        return (
            f"{', '.join(works)}: {len(self.sizes)} sizes, {'; '.join(self.labels)}, "
            f"{self.origin} {self.date}, {doubts} of {len(self.measurements)} figures unreliable"
        )


def times_as_fast(these_s: Sequence[float], those_s: Sequence[float]) -> Ratio | None:
    """Return how many times as fast these are as those; None where they are not the same rounds."""
    return ratio_of_rounds(those_s, these_s) if len(these_s) == len(those_s) else None


def describe_machine() -> dict[str, Any]:
    """Return the date, the versions and the machine, as the attributes of a `Result` made now."""
    versions = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_xla": version_of("torch_xla"),
        "CUDA": torch.version.cuda,
        "ROCm": torch.version.hip,
        "driver": getattr(read_driver(), "version", None),
        "course": course_utils.__version__,
    }
    known = {name: str(version) for name, version in versions.items() if version}
    machine = {"cpu": cpu_name(), "system": platform.system()}
    return {"date": datetime.date.today().isoformat(), "versions": known, "machine": machine}


def _kind_of(one: Measurement) -> str:
    """Return what was measured, in words: what has to agree in a picture."""
    return f"{one.workload} ({one.precision}, in {one.unit})"
