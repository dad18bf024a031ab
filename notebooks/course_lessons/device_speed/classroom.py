"""Merge what a class measured: `python -m course_lessons.device_speed.classroom results/*.json`."""

import argparse
import glob
import os
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from course_tools.compare.measurement import Measurement
from course_tools.compare.results import Result
from course_utils.atomic_write import refuse_foreign, write_atomically
from course_utils.show_result import show_result
from course_utils.tables import clean

if TYPE_CHECKING:
    from course_tools.figures import Picture


@dataclass(frozen=True)
class ClassResult:
    """The results of a class, and the files that could not be used."""

    results: dict[str, Result]  #: by the name of their file
    left_out: dict[str, str]  #: names of files, with the reason

    def plot(self) -> "Picture":
        """Draw what everyone measured, with the class's median for each kind of device."""
        from course_tools.compare.charts import plot_rates

        everyone = [result.of(label) for result in self.results.values() for label in result.labels]
        groups: dict[str, list[Measurement]] = {}
        for line in everyone:
            first = line[0]
            one_thread = (first.kind, first.threads) == ("cpu", 1)
            groups.setdefault("cpu, 1 thread" if one_thread else first.kind, []).extend(line)
        medians = [_median(f"{name} (median)", group) for name, group in groups.items()]
        several = f"{len(self.results)} results and their medians"
        words = several if len(self.results) > 1 else "one result"
        title = f"{everyone[0][0].workload}: {words}"
        return plot_rates(medians, title, thin=everyone)


def _median(label: str, group: list[Measurement]) -> list[Measurement]:
    """Return the median rate of a group at each size, as a line of its own."""
    line = []
    for size in sorted({one.size for one in group}):
        same = [one for one in group if one.size == size]
        median_s = same[0].items / statistics.median(one.rate for one in same)
        line.append(replace(same[0], label=label, rounds_s=(median_s,), warnings=()))
    return line


def merge(paths: Iterable[str | os.PathLike]) -> ClassResult:
    """Read what students saved, and say which files do not fit.

    A file is left out when it is not the result of one comparison, when it is a copy of another
    one, or when it is about another workload or precision than most.
    """
    results: dict[str, Result] = {}
    kinds: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for path in sorted(map(Path, paths)):
        name = str(path)
        try:
            result = Result.load(path)
            kinds[name] = f"{result.work.workload} in {result.work.precision}"
            results[name] = result
        except (ValueError, OSError) as error:
            left_out[name] = str(error)
    usual = statistics.mode(kinds.values()) if kinds else ""
    kept: dict[str, Result] = {}
    for name, result in results.items():
        twins = [twin for twin, one in kept.items() if one.measurements == result.measurements]
        if twins:
            left_out[name] = f"the same measurements as {Path(twins[0]).name}"
        elif kinds[name] != usual:
            left_out[name] = f"{kinds[name]}, while most files are {usual}"
        else:
            kept[name] = result
    return ClassResult(kept, left_out)


def main(arguments: list[str] | None = None) -> None:
    """Merge the results of a class into one picture."""
    parser = argparse.ArgumentParser(
        prog="python -m course_lessons.device_speed.classroom", description=main.__doc__
    )
    parser.add_argument("files", nargs="+", help="what `Result.save` wrote")
    parser.add_argument("--out", default="class.png", help="the picture's name")
    options = parser.parse_args(arguments)
    out = Path(options.out)
    try:
        refuse_foreign(out, "Matplotlib")
        if out.is_dir() or not out.parent.is_dir():
            parser.error(f"--out {out} is a folder, or in a folder that does not exist.")
    except OSError as error:  # such as a name that is too long
        parser.error(f"--out: {error}. Choose another name.")
    files: list[str] = []
    for name in options.files:
        files += glob.glob(name) or [name]  # a Windows shell hands results/*.json over as it is
    merged = merge(files)
    for name, reason in merged.left_out.items():
        show_result(f"left out {clean(name, 600)}: {clean(reason, 600)}")
    if not merged.results:
        raise SystemExit(f"{parser.prog}: none of {len(files)} files could be used.")
    try:
        picture = merged.plot()
        write_atomically(out, picture.png)
    except (ModuleNotFoundError, OSError) as error:
        raise SystemExit(f"{parser.prog}: {error}") from None
    show_result(f"{picture.alt}\nmerged {len(merged.results)} of {len(files)} files: {options.out}")


if __name__ == "__main__":
    main()
