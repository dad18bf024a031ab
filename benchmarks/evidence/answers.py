"""Print how far answers were off: python benchmarks/evidence/answers.py FILE

FILE is a CSV with a row for each published figure that the estimate was asked for as its source
measured it. Its columns: source, training and compiled ("True" or "False"), devices (how many),
unit ("s per step", "per second" or "hours"), measured, estimated (or a name that begins so, with
the version), interval_low and interval_high, in that unit, and said ("checked" or "unchecked").
"""

import argparse
import csv
import math
import statistics
from pathlib import Path

import numpy as np

HEADER = ("", "n", "mean error", "9 in 10 within", "inside", "width (high / low), middle")
PARTS = {
    "everything": lambda row: True,
    "training": lambda row: row["training"] == "True",
    "inference of networks": lambda row: _is_network(row) and row["training"] == "False",
    "compiled": lambda row: row["compiled"] == "True",
    "eager": lambda row: _is_network(row) and row["compiled"] == "False",
    "serving language models": lambda row: row["unit"] == "per second",
    "fine-tuning in hours": lambda row: row["unit"] == "hours",
    "several devices": lambda row: row["devices"] != "1",
    "checked": lambda row: row["said"] == "checked",
}


def _is_network(row):
    return row["unit"] == "s per step"


def summary(rows):
    """Return the cells of some rows: how far off, and what their intervals hold."""
    measured, estimated, low, high = (
        np.array([float(row[name]) for row in rows])
        for name in ("measured", "estimated", "interval_low", "interval_high")
    )
    ratios = estimated / measured
    within = math.exp(np.quantile(np.abs(np.log(ratios)), 0.9))
    inside = np.mean((low <= measured) & (measured <= high))
    mean, width = np.mean(np.abs(ratios - 1)), statistics.median(high / low)
    return f"{len(rows)}", f"{mean:.1%}", f"{within:.2f}", f"{inside:.0%}", f"{width:.2f}"


def main():
    """Print the table, by kind of question and by source."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="the answers, as the first lines above say")
    with parser.parse_args().file.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    name = next(column for column in rows[0] if column.startswith("estimated"))
    rows = [row | {"estimated": row[name]} for row in rows]
    parts = {name: [row for row in rows if chosen(row)] for name, chosen in PARTS.items()}
    for source in sorted({row["source"] for row in rows}):
        parts[source] = [row for row in rows if row["source"] == source]
    print("|", " | ".join(HEADER), "|")
    print("|---" * len(HEADER) + "|")
    for name, chosen in parts.items():
        cells = summary(chosen) if chosen else ("0", *[""] * 4)
        print("|", " | ".join((name, *cells)), "|")
    print(f"{len(parts['checked']) / len(rows):.0%} of the answers are checked.")


if __name__ == "__main__":
    main()
