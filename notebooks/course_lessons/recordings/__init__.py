"""Figures of real GPUs, read from what others recorded with torch.profiler.

A table holds what a picture shows: lane, what, start, length. Work that repeats is joined into one
row, with its number and the time that it fills; `sources.json` says where each is from.
"""

import csv
import json
from dataclasses import dataclass
from pathlib import Path

from course_tools.timeline.lanes import Lane, Span

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Recording:
    """A part of a training run that others recorded on a real GPU."""

    rows: tuple[dict[str, str], ...]  #: of its table
    card: str
    recorded: str  #: month and year
    ran: str  #: what was run, as far as that is known
    note: str
    source: str  #: the repository
    commit: str
    path: str  #: of the recording in the repository

    @property
    def caption(self) -> str:
        """The sentence that stands under a picture of it."""
        said = f"Recorded by others on {self.card}, {self.recorded}: {self.ran}. {self.note}"
        return f"{said.strip()} Source: {self.source}, {self.path} at {self.commit[:8]}."

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """The lanes of its timeline; work that is joined in a row is spread evenly over it."""
        layers: dict[tuple[str, str], dict[str, list[Span]]] = {}
        for row in self.rows:
            found = layers.setdefault(
                (row["lane"], row["kind"]), {"work": [], "name": [], "wait": []}
            )
            found[row["layer"]] += _spread(row)
        made = []
        for (name, kind), found in layers.items():
            work, named, waits = (tuple(found[layer]) for layer in ("work", "name", "wait"))
            made.append(Lane(name, kind, work, named, waits))
        return tuple(made)

    def __repr__(self) -> str:
        return self.caption


def _spread(row: dict[str, str]) -> list[Span]:
    """Return the spans of a row, as many and as long together as it says."""
    count = int(row["count"])
    start_s, length_s, busy_s = (
        float(row[key]) / 1e3 for key in ("start_ms", "length_ms", "busy_ms")
    )
    each_s = busy_s / count
    apart_s = (length_s - each_s) / max(count - 1, 1)
    starts = [start_s + number * apart_s for number in range(count)]
    return [Span(row["what"], begin_s, begin_s + each_s) for begin_s in starts]


def names() -> list[str]:
    """Return the names of the recordings."""
    return list(_sources())


def load(name: str) -> Recording:
    """Return a recording by its name.

    Raises:
        ValueError: there is none of that name.
    """
    sources = _sources()
    if name not in sources:
        raise ValueError(f"there is no recording {name!r}; there are {', '.join(sources)}.")
    with open(FOLDER / f"{name}.csv", encoding="utf-8", newline="") as file:
        return Recording(rows=tuple(csv.DictReader(file)), **sources[name])


def _sources() -> dict[str, dict[str, str]]:
    return json.loads(Path(FOLDER, "sources.json").read_text(encoding="utf-8"))
