"""Merge what a class measured: `python -m course_utils.compare.classroom results/*.json`."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from course_utils.compare.results import Comparison
from course_utils.compare.results_file import ForeignFile, load


@dataclass(frozen=True)
class ClassResult:
    """What a class measured, and which files could not be used.

    Attributes:
        comparisons: by the name of their file.
        left_out: names of files, with the reason.
    """

    comparisons: dict[str, Comparison]
    left_out: dict[str, str]

    def to_frame(self):
        """Return a pandas DataFrame with one line for each file, contestant and size."""
        import pandas as pd

        lines = [
            {
                "file": name,
                "machine": comparison.made.get("machine", ""),
                "device": row.label,
                comparison.size_name: row.size,
                f"{comparison.unit}/s": row.rate,
                "trusted": not row.warnings,
            }
            for name, comparison in self.comparisons.items()
            for row in comparison.rows
        ]
        return pd.DataFrame(lines)

    def plot(self):
        """Return the picture of all that was measured; see `charts.plot_class`."""
        from course_utils.compare.charts import plot_class

        return plot_class(list(self.comparisons.values()))


def merge(paths: Sequence[str | os.PathLike]) -> ClassResult:
    """Read what students saved, and say which files do not fit.

    A file is left out when it cannot be read as a comparison, when another one holds the same measurements, or when
    it is about another workload or precision than most. Nothing in a file is ever run.

    Args:
        paths: of the files.
    """
    found: dict[str, Comparison] = {}
    left_out: dict[str, str] = {}
    seen: dict[tuple, str] = {}
    for path in sorted(map(Path, paths)):
        try:
            comparison = load(path)
        except (ForeignFile, OSError) as error:
            left_out[str(path)] = str(error)
            continue
        content = comparison.workload, comparison.precision, comparison.rows
        if content in seen:
            left_out[str(path)] = f"the same measurements as {seen[content]}."
        else:
            found[str(path)], seen[content] = comparison, path.name
    return _of_one_kind(found, left_out)


def _of_one_kind(found: dict[str, Comparison], left_out: dict[str, str]) -> ClassResult:
    kinds = [(c.workload, c.precision, c.size_name, c.unit) for c in found.values()]
    usual = max(kinds, key=kinds.count, default=None)
    fitting = {}
    for (name, comparison), kind in zip(found.items(), kinds, strict=True):
        if kind == usual:
            fitting[name] = comparison
        else:
            left_out[name] = f"{kind[0]} in {kind[1]}, while most files are {usual[0]} in {usual[1]}."
    return ClassResult(fitting, left_out)


def main(arguments: list[str] | None = None) -> None:
    """Merge the results of a class into one table and one picture."""
    parser = argparse.ArgumentParser(prog="python -m course_utils.compare.classroom", description=main.__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="what `Comparison.save` wrote")
    parser.add_argument("--out", type=Path, default=Path("class"), help="the results' names, without ending")
    options = parser.parse_args(arguments)
    result = merge(options.files)
    for name, reason in result.left_out.items():
        print(f"left out {printable(name)}: {printable(reason)}")
    if not result.comparisons:
        raise SystemExit(f"{parser.prog}: none of {len(options.files)} files could be used.")
    table, image = options.out.with_suffix(".csv"), options.out.with_suffix(".png")
    frame = result.to_frame()
    frame.map(_as_cell).to_csv(table, index=False)
    picture = result.plot()
    image.write_bytes(picture.png)
    print(f"{picture.alt}\nmerged {len(result.comparisons)} of {len(options.files)} files into {table} and {image}")


def printable(text: str) -> str:
    """Return the text without anything that could steer a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _as_cell(value: object) -> object:
    # A spreadsheet would take a text that starts like this for a formula, and run it.
    if isinstance(value, str):
        value = printable(value)
        return "'" + value if value.startswith(("=", "+", "-", "@")) else value
    return value


if __name__ == "__main__":
    main()
