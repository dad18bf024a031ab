"""Merge what a class measured: `python -m course_utils.compare.classroom results/*.json`."""

from __future__ import annotations

import argparse
import glob
import os
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from course_utils.text import clean, show_result

if TYPE_CHECKING:  # imported where they are used, so that --help costs nothing
    import pandas as pd

    from course_utils.compare.measurement import Measurement
    from course_utils.compare.results import Result
    from course_utils.figures import Picture


@dataclass(frozen=True)
class ClassResult:
    """What a class measured, and which files could not be used."""

    results: dict[str, Result]  #: by the name of their file
    left_out: dict[str, str]  #: names of files, with the reason

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table with one line for each file, contestant and size."""
        import pandas as pd

        lines = []
        for name, result in self.results.items():
            for one in result.measurements:
                line = {
                    "file": name,
                    "machine": result.machine.get("cpu", ""),
                    "device": one.label,
                    "size": one.size,
                    "rate per s": one.rate,
                    "unit": one.unit,
                    "reliable": not one.warnings,
                }
                lines.append(line)
        return pd.DataFrame(lines)

    def plot(self) -> Picture:
        """Draw what everyone measured, with the class's median for each kind of device."""
        from course_utils.compare.charts import plot_rates

        crowd = [result.of(label) for result in self.results.values() for label in result.labels]
        groups: dict[str, dict[int, list[Measurement]]] = {}
        for line in crowd:
            name = (
                "cpu, 1 thread" if (line[0].kind, line[0].threads) == ("cpu", 1) else line[0].kind
            )
            for one in line:
                groups.setdefault(name, {}).setdefault(one.size, []).append(one)
        medians = []
        for name, by_size in groups.items():
            medians.append([_median(name, by_size[size]) for size in sorted(by_size)])
        title = f"{crowd[0][0].workload}: the class of {len(self.results)}"
        return plot_rates(medians, crowd=crowd, title=title)


def _median(name: str, found: list[Measurement]) -> Measurement:
    median_s = found[0].items / statistics.median(one.rate for one in found)
    return replace(found[0], label=f"median {name}", rounds_s=(median_s,), warnings=())


def merge(paths: Iterable[str | os.PathLike]) -> ClassResult:
    """Read what students saved, and say which files do not fit.

    A file is left out when it is not the result of one comparison, when it is a copy of another
    one, or when it is about another workload or precision than most.
    """
    from course_utils.compare.results import Result

    found: dict[str, Result] = {}
    kinds: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for path in sorted(map(Path, paths)):
        name = str(path)
        try:
            result = Result.load(path)
            kind = f"{result.work.workload} in {result.work.precision}"
        except (ValueError, OSError) as error:
            left_out[name] = str(error)
            continue
        twins = [other for other, one in found.items() if one.measurements == result.measurements]
        if twins:
            left_out[name] = f"the same measurements as {Path(twins[0]).name}"
        else:
            found[name], kinds[name] = result, kind
    usual = statistics.mode(kinds.values()) if kinds else ""
    for name, kind in kinds.items():
        if kind != usual:
            del found[name]
            left_out[name] = f"{kind}, while most files are {usual}"
    return ClassResult(found, left_out)


def main(arguments: list[str] | None = None) -> None:
    """Merge the results of a class into one table and one picture."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.compare.classroom", description=main.__doc__
    )
    parser.add_argument("files", nargs="+", help="what `Result.save` wrote")
    parser.add_argument("--out", default="class", help="the results' names, without ending")
    options = parser.parse_args(arguments)
    files: list[str] = []
    for given in options.files:
        # a Windows shell hands results/*.json over as it is
        files += [given] if os.path.lexists(given) else sorted(glob.glob(given)) or [given]
    merged = merge(files)
    for name, reason in merged.left_out.items():
        show_result(f"left out {clean(name, 600)}: {clean(reason, 600)}")
    if not merged.results:
        raise SystemExit(f"{parser.prog}: none of {len(files)} files could be used.")
    table, image = Path(f"{options.out}.csv"), Path(f"{options.out}.png")
    table.parent.mkdir(parents=True, exist_ok=True)
    # with the mark by which Excel knows UTF-8
    merged.to_frame().to_csv(table, index=False, encoding="utf-8-sig")
    picture = merged.plot()
    image.write_bytes(picture.png)
    used = f"merged {len(merged.results)} of {len(files)} files into {table} and {image}"
    show_result(f"{picture.alt}\n{used}")


if __name__ == "__main__":
    main()
