"""Merge what a class measured: `python -m course_utils.compare.classroom results/*.json`."""

import argparse
import glob
import os
import statistics
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from course_utils.compare.charts import plot_rates
from course_utils.compare.measurement import Measurement
from course_utils.compare.results import Result
from course_utils.figures import Picture
from course_utils.text import clean, show_result


@dataclass(frozen=True)
class ClassResult:
    """What a class measured, and which files could not be used."""

    results: dict[str, Result]  #: by the name of their file
    left_out: dict[str, str]  #: names of files, with the reason

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table with one line for each file, contestant and size."""
        lines = [
            (
                name,
                result.machine.get("cpu", ""),
                one.label,
                one.size,
                one.rate,
                one.unit,
                not one.warnings,
            )
            for name, result in self.results.items()
            for one in result.measurements
        ]
        return pd.DataFrame(
            lines, columns=["file", "machine", "device", "size", "rate per s", "unit", "trusted"]
        )

    def plot(self) -> Picture:
        """Draw what everyone measured, with the class's median for each kind of device."""
        crowd = [result.of(label) for result in self.results.values() for label in result.labels]
        groups: dict[str, dict[int, list[Measurement]]] = defaultdict(lambda: defaultdict(list))
        for one in (one for line in crowd for one in line):
            groups["cpu, 1 thread" if (one.kind, one.threads) == ("cpu", 1) else one.kind][
                one.size
            ].append(one)
        medians = [
            [_median(name, by_size[size]) for size in sorted(by_size)]
            for name, by_size in groups.items()
        ]
        return plot_rates(
            medians, crowd=crowd, title=f"{crowd[0][0].workload}: the class of {len(self.results)}"
        )


def _median(name: str, found: list[Measurement]) -> Measurement:
    median_s = found[0].items / statistics.median(one.rate for one in found)
    return replace(
        found[0],
        label=f"median {name}",
        median_s=median_s,
        interval_s=None,
        rounds_s=(),
        warnings=(),
    )


def merge(paths: Iterable[str | os.PathLike]) -> ClassResult:
    """Read what students saved, and say which files do not fit.

    A file is left out when it cannot be read as the result of one comparison, when another one
    holds the same measurements, when it is about another workload or precision than most, or when a
    size or rate in it is so far from the others' that it would hide them. Nothing in a file is ever
    run.
    """
    found, kinds, left_out = dict[str, Result](), dict[str, str](), dict[str, str]()
    for path in sorted(map(Path, paths)):
        try:
            result = Result.load(path)
            kind = f"{result.work.workload} in {result.work.precision}"
            if twins := [
                name for name, other in found.items() if other.measurements == result.measurements
            ]:
                raise ValueError(
                    f"the same measurements as {os.path.relpath(twins[0], path.parent)}."
                )
            found[str(path)], kinds[str(path)] = result, kind
        except (ValueError, OSError) as error:
            left_out[str(path)] = str(error).removeprefix(f"{path.name} ")
    usual = max(kinds.values(), key=list(kinds.values()).count, default="")
    odd = {
        name: f"{kind}, while most files are {usual}."
        for name, kind in kinds.items()
        if kind != usual
    }
    odd |= _far({name: result for name, result in found.items() if name not in odd})
    return ClassResult(
        {name: result for name, result in found.items() if name not in odd}, left_out | odd
    )


def _far(found: dict[str, Result]) -> dict[str, str]:
    far: dict[str, str] = {}
    for what in ("size", "rate") if len(found) > 2 else ():  # of two, neither says which is wrong
        given = {
            name: [getattr(one, what) for one in result.measurements]
            for name, result in found.items()
        }
        middle = statistics.median(map(statistics.median, given.values()))
        why = (
            f"a {what} of {{:.3g}} is more than 10,000 times off the class's median, {middle:.3g}."
        )
        odd = {
            name: [one for one in of if not 1e-4 < one / middle < 1e4] for name, of in given.items()
        }
        far |= {name: why.format(of[0]) for name, of in odd.items() if of}
    return far


def main(arguments: list[str] | None = None) -> None:
    """Merge the results of a class into one table and one picture."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.compare.classroom", description=main.__doc__
    )
    parser.add_argument("files", nargs="+", help="what `Result.save` wrote")
    parser.add_argument(
        "--out", type=Path, default=Path("class"), help="the results' names, without ending"
    )
    options = parser.parse_args(arguments)
    # A Windows shell hands results/*.json over as it is.
    named = (
        [given] if os.path.lexists(given) else sorted(glob.glob(given)) or [given]
        for given in options.files
    )
    files = [name for names in named for name in names]
    merged = merge(files)
    for name, reason in merged.left_out.items():
        show_result(f"left out {clean(name, 600)}: {clean(reason, 600)}")
    if not merged.results:
        raise SystemExit(f"{parser.prog}: none of {len(files)} files could be used.")
    table, image = Path(f"{options.out}.csv"), Path(f"{options.out}.png")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    # else Excel garbles names
    merged.to_frame().map(_as_cell).to_csv(table, index=False, encoding="utf-8-sig")
    picture = merged.plot()
    image.write_bytes(picture.png)
    show_result(
        f"{picture.alt}\nmerged {len(merged.results)} of {len(files)} files into {table} and {image}"
    )


def _as_cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    # A spreadsheet takes a text that begins like this for a formula, and runs it. NFKC: also where
    # the sign is a wide one. Source: OWASP, CSV Injection.
    return "'" * unicodedata.normalize("NFKC", value).lstrip().startswith(
        ("=", "+", "-", "@")
    ) + clean(value, 600)


if __name__ == "__main__":
    main()
