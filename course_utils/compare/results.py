"""Results: measured or published figures with all that is needed to judge them, as a table, a
picture and a file.

A file is JSON, `{"schema": ..., "version": 2, ...}` with the attributes of `Result` and of
`Measurement` under their own names.
"""

import datetime
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

import course_utils
from course_utils.compare.measurement import Crossover, Measurement
from course_utils.devices import cpu_name, find_devices
from course_utils.hardware.machine import read_package
from course_utils.hardware.nvidia import read_driver
from course_utils.in_turn import PRECISION, ratio_of_rounds

if TYPE_CHECKING:
    import pandas as pd

    from course_utils.figures import Picture

SCHEMA = {"schema": "accelerator-course result", "version": 2}
RECORDINGS = Path(__file__).parent / "recordings"


@dataclass(frozen=True)
class Result:
    """What was measured or published, and how."""

    measurements: tuple[Measurement, ...] = ()  #: the figures
    origin: Literal["measured", "published"] = "measured"  #: with this course, or by somebody else
    date: str = ""  #: when, as 2026-11-21
    command: str = ""  #: what measured it, if that was a command
    source: str = ""  #: where it was published
    detail: str = ""  #: what else there is to know
    #: of Python, PyTorch, CUDA, the driver, and so on
    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, str] = field(default_factory=dict)  #: the CPU and the operating system

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
        if not self.measurements:
            raise ValueError("a comparison was requested, but nothing has been measured yet.")
        kinds = {(one.workload, one.precision) for one in self.measurements}
        if len(kinds) > 1:
            raise ValueError(
                f"this result holds {len(kinds)} kinds of work. Pick one: result.select(workload)."
            )
        return self.measurements[0]

    def select(self, workload: str, precision: str | None = None) -> "Result":
        """Return the result with nothing but one workload, in one precision or in all."""
        found = [one for one in self.measurements if one.workload == workload]
        if precision:
            found = [one for one in found if one.precision == precision]
        return replace(self, measurements=tuple(found))

    def of(self, label: str) -> list[Measurement]:
        """Return the measurements of one contestant, smallest size first."""
        found = [one for one in self.measurements if one.label == label]
        return sorted(found, key=lambda one: one.size)

    def crossover(self) -> Crossover:
        """Return from which sizes on an accelerator, or the CPU with the most threads, beats the
        CPU.

        Raises:
            ValueError: there are not two contestants to compare, or they shared no rounds.
        """
        cpus = [label for label in self.labels if self.of(label)[0].kind == "cpu"]
        others = [label for label in self.labels if label not in cpus]
        this = [*others[:1], *self.labels[-1:], ""][0]
        rivals = [label for label in cpus or self.labels if label != this]
        if not rivals:
            here = ", ".join(self.labels) or "none"
            raise ValueError(f"a crossover needs two contestants, but this has {here}.")
        shown = [one for label in (this, *rivals) for one in self.of(label)]
        return Crossover(
            winner=this,
            beats={rival: self._wins_from(this, rival) for rival in rivals},
            sizes=self.sizes,
            doubts=sum(bool(one.warnings) for one in shown),
        )

    def _wins_from(self, this: str, rival: str) -> int | None:
        wins: int | None = None
        for mine, theirs in zip(self.of(this), self.of(rival), strict=True):
            low, _ = ratio_of_rounds(theirs.rounds_s, mine.rounds_s).interval
            if low <= 1 + PRECISION:  # equal calls can differ by less than that
                wins = None
            elif wins is None:
                wins = mine.size
        return wins

    def to_frame(self) -> "pd.DataFrame":
        """Return a pandas table with one line for each size and contestant; of several kinds of
        work, `select` one.
        """
        import pandas as pd

        work, first = self.work, self.labels[0]
        base = {one.size: one.rounds_s for one in self.of(first)}
        lines = []
        for one in self.measurements:
            times = ratio_of_rounds(base[one.size], one.rounds_s)
            line = {
                work.size_name: one.size,
                "device": one.label,
                "median ms": one.median_s * 1e3,
                f"{work.unit}/s": one.rate,
                f"times {first}": times.median,
                "95 % interval": f"{times.interval[0]:.2f} to {times.interval[1]:.2f}",
                "first call ms": one.first_s and one.first_s * 1e3,
                "largest error": one.error,
                "reliable": not one.warnings,
            }
            lines.append(line)
        return pd.DataFrame(lines)

    def plot(self, recordings: Sequence["Result"] = (), title: str = "") -> "Picture":
        """Draw each contestant's rate against the size, and mark where the lead changes hands.

        Args:
            recordings: results from other machines, drawn dashed where they hold the same workload,
                in any precision if they were published and in the same one if they were measured.
            title: what the picture shows, in at most 45 characters; by default, who wins.

        Raises:
            ValueError: nothing has been measured yet, or several kinds of work.
        """
        # here, since a result is of use without matplotlib
        from course_utils.compare.charts import plot_rates

        work, elsewhere = self.work, []
        for one in recordings:
            precision = work.precision if one.origin == "measured" else None
            same = one.select(work.workload, precision)
            elsewhere += [same.of(label) for label in same.labels]
        crossover = self.crossover() if len(self.labels) > 1 else None
        lines = [self.of(label) for label in self.labels]
        return plot_rates(lines, elsewhere, crossover, title=title)

    def save(self, path: str | os.PathLike) -> None:
        """Write the result as a JSON file."""
        text = json.dumps(SCHEMA | asdict(self), ensure_ascii=False, allow_nan=False, indent=1)
        Path(path).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Result":
        """Read what `save` wrote.

        Raises:
            OSError: there is no such file, or it cannot be read.
            ValueError: it is not a result, or one of another version of the course.
        """
        try:
            content = json.loads(Path(path).read_bytes())
            found = {name: content.pop(name, None) for name in SCHEMA}
            if found != SCHEMA:
                raise ValueError(f"its schema and version are {found}, not {SCHEMA}")
            measurements = []
            for each in content.pop("measurements"):
                lists = {name: tuple(each[name]) for name in ("rounds_s", "warnings")}
                measurements.append(Measurement(**each | lists))
            return cls(tuple(measurements), **content)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(
                f"{Path(path).name} is not a result that this course can read: {error}"
            ) from error

    def __repr__(self) -> str:
        works = dict.fromkeys(f"{one.workload} in {one.precision}" for one in self.measurements)
        contestants = f"{len(self.labels)} contestants ({'; '.join(self.labels)})"
        doubts = sum(bool(one.warnings) for one in self.measurements)
        doubt = f"{doubts or 'none'} of {len(self.measurements)} figures unreliable"
        sizes = f"{len(self.sizes)} sizes"
        return f"{', '.join(works)}: {sizes}, {contestants}, {self.origin} {self.date}, {doubt}"


def describe_machine() -> dict[str, Any]:
    """Return the date, the versions and the machine, as the attributes of a `Result` made now."""
    versions = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_xla": read_package("torch_xla").version,
        "CUDA": torch.version.cuda,
        "ROCm": torch.version.hip,
        "driver": getattr(read_driver(), "version", None),
        "course": course_utils.__version__,
    }
    known = {name: str(found) for name, found in versions.items() if found}
    machine = {"cpu": cpu_name(), "system": platform.system()}
    return {"date": datetime.date.today().isoformat(), "versions": known, "machine": machine}


def recorded(folder: Path = RECORDINGS) -> dict[str, Result]:
    """Return every result that lies in a folder, by the name of its file without the ending."""
    return {path.stem: Result.load(path) for path in sorted(folder.glob("*.json"))}


def machines_elsewhere() -> list[Result]:
    """Return what is recorded of devices that are not in this machine, each contestant under a name
    that says so.
    """
    here = {device.name for device in find_devices()}
    found = []
    for result in recorded().values():
        others = []
        for one in result.measurements:
            named = one.label.startswith(one.device)
            label = one.label if named else f"{one.device}, {one.label}"
            if one.device not in here:
                others.append(replace(one, label=f"{label} ({result.origin})"))
        if others:
            found.append(replace(result, measurements=tuple(others)))
    return found
