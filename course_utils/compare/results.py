"""Results: measured or published figures with all that is needed to judge them, as a table, a
picture and a file.

A file is JSON, `{"schema": ..., "version": 1, ...}` with the attributes of `Result` and of
`Measurement` under their own names. It is written whole or not at all, and read without trusting a
word of it; see `untrusted`.
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
from course_utils.compare.untrusted import build, read_json
from course_utils.devices import cpu_name, find_devices
from course_utils.hardware.machine import read_package
from course_utils.hardware.nvidia import read_driver
from course_utils.in_turn import PRECISION, ratio_of_rounds

if TYPE_CHECKING:
    import pandas as pd

    from course_utils.figures import Picture

SCHEMA = {"schema": "accelerator-course result", "version": 1}
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
    #: what the device said meanwhile, such as "power_w"
    sensors: dict[str, float] = field(default_factory=dict)

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
        if len(kinds := {(one.workload, one.precision) for one in self.measurements}) > 1:
            raise ValueError(
                f"this result holds {len(kinds)} kinds of work. Pick one with result.select(workload)."
            )
        return self.measurements[0]

    def select(self, workload: str, precision: str | None = None) -> "Result":
        """Return the result with nothing but one workload, in one precision or in all."""
        found = (
            m
            for m in self.measurements
            if m.workload == workload and precision in (None, m.precision)
        )
        return replace(self, measurements=tuple(found))

    def of(self, label: str) -> list[Measurement]:
        """Return the measurements of one contestant, smallest size first."""
        return sorted(
            (one for one in self.measurements if one.label == label), key=lambda one: one.size
        )

    def crossover(self) -> Crossover:
        """Return from which sizes on an accelerator, or the CPU with the most threads, beats the
        others on the CPU.

        Raises:
            ValueError: there are not two contestants to compare, or they shared no rounds.
        """
        cpus = [label for label in self.labels if self.of(label)[0].kind == "cpu"]
        this = next(
            (label for label in self.labels if label not in cpus), self.labels[-1] if cpus else ""
        )
        if not (rivals := [label for label in cpus or self.labels if label != this]):
            raise ValueError(
                f"a crossover needs two contestants, but this has {', '.join(self.labels) or 'none'}."
            )
        doubts = sum(bool(one.warnings) for label in (this, *rivals) for one in self.of(label))
        return Crossover(
            this, {rival: self._wins_from(this, rival) for rival in rivals}, self.sizes, doubts
        )

    def _wins_from(self, this: str, rival: str) -> int | None:
        wins = None
        for mine, theirs in zip(self.of(this), self.of(rival), strict=True):
            low, _ = ratio_of_rounds(theirs.rounds_s, mine.rounds_s).interval
            # equal calls can differ by less than that
            wins = (wins or mine.size) if low > 1 + PRECISION else None
        return wins

    def to_frame(self) -> "pd.DataFrame":
        """Return a pandas table with one line for each size and contestant; of several kinds of
        work, `select` one.
        """
        import pandas as pd

        work = self.work
        base, lines = {one.size: one.rounds_s for one in self.of(self.labels[0])}, []
        for one in self.measurements:
            times = ratio_of_rounds(base[one.size], one.rounds_s)
            interval = f"{times.interval[0]:.2f} to {times.interval[1]:.2f}"
            first_ms = one.first_s and one.first_s * 1e3
            line = (
                one.size,
                one.label,
                one.median_s * 1e3,
                one.rate,
                times.median,
                interval,
                first_ms,
                one.error,
            )
            lines.append((*line, not one.warnings))
        columns = [
            work.size_name,
            "device",
            "median ms",
            f"{work.unit}/s",
            f"times {self.labels[0]}",
        ]
        return pd.DataFrame(
            lines, columns=[*columns, "95 % interval", "first call ms", "largest error", "trusted"]
        )

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

        work = self.work
        same = (
            one.select(work.workload, work.precision if one.origin == "measured" else None)
            for one in recordings
        )
        elsewhere = [recording.of(label) for recording in same for label in recording.labels]
        crossover = self.crossover() if len(self.labels) > 1 else None
        return plot_rates(
            [self.of(label) for label in self.labels], elsewhere, crossover, title=title
        )

    def save(self, path: str | os.PathLike) -> None:
        """Write the result as a JSON file, whole or not at all."""
        path = Path(path)
        half = path.with_name(path.name + ".part")
        text = json.dumps(SCHEMA | asdict(self), ensure_ascii=False, allow_nan=False, indent=1)
        half.write_text(text + "\n", encoding="utf-8")
        os.replace(half, path)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Result":
        """Read what `save` wrote.

        Raises:
            OSError: there is no such file, or it cannot be read.
            ValueError: it is not a result, not a complete one, or from another version of the
                course.
        """
        content = read_json(path)
        try:
            found = [
                content.pop(name, None) if isinstance(content, dict) else None for name in SCHEMA
            ]
            if found != (known := list(SCHEMA.values())):
                raise ValueError(f"its schema and version are not {known}, but {str(found)[:99]}")
            return build(cls, content, "result")
        except ValueError as error:
            raise ValueError(
                f"{Path(path).name} is not a result that this course can read: {error}."
            ) from error

    def __repr__(self) -> str:
        works = ", ".join(
            dict.fromkeys(f"{one.workload} in {one.precision}" for one in self.measurements)
        )
        doubts = sum(bool(one.warnings) for one in self.measurements)
        what = f"{works}: {len(self.sizes)} sizes, {len(self.labels)} contestants ({'; '.join(self.labels)})"
        trust = f"{doubts or 'none'} of {len(self.measurements)} figures not to be trusted"
        return f"{what}, {self.origin} {self.date}, {trust}"


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
        others = [one for one in result.measurements if one.device not in here]
        names = [
            one.label if one.label.startswith(one.device) else f"{one.device}, {one.label}"
            for one in others
        ]
        named = (
            replace(one, label=f"{name} ({result.origin})")
            for one, name in zip(others, names, strict=True)
        )
        found += [replace(result, measurements=tuple(named))] if others else []
    return found
