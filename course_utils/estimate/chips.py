"""The chips that an estimate can be asked for, and the links between them: data sheets' figures,
kept in chips.json.
"""

import difflib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

DATA = Path(__file__).parent / "chips.json"


@dataclass(frozen=True)
class Chip:
    """One chip, by its data sheet: published figures.

    Attributes:
        name: as this course writes it, such as "RTX 4090".
        also: other names by which it is found.
        vendor: who makes it.
        kind: "gpu" or "tpu".
        year: when it came out.
        peak_tflop_per_s: dense arithmetic by precision, in 10^12 operations a second, a
            multiply-add being two.
        bandwidth_gb_per_s: of its memory, in 10^9 bytes a second.
        memory_gb: size of its memory as the vendor writes it, in GiB.
        watts: the power that the board is built for, or None where the vendor does not say.
        link: the name of what connects it to its neighbours, or "".
        source: address of the data sheet.
        uncertain: the names of figures that come from secondary sources or were computed.
    """

    name: str
    also: tuple[str, ...]
    vendor: str
    kind: str
    year: int
    peak_tflop_per_s: dict[str, float]
    bandwidth_gb_per_s: float
    memory_gb: float
    watts: float | None
    link: str
    source: str
    uncertain: tuple[str, ...]

    def at(self, precision: str) -> str:
        """Return the precision that the chip computes in when asked for `precision`; "amp" is its
        own 16 bits.

        Raises:
            ValueError: the chip has no such precision.
        """
        known = self.peak_tflop_per_s
        if precision == "amp":
            return "bf16" if "bf16" in known else "fp16"
        if precision not in known:
            raise ValueError(
                f"precision {precision!r} was asked of the {self.name}, whose data sheet has {', '.join(known)}. "
                'Pass one of these, or "amp", which takes bf16 where there is bf16 and fp16 elsewhere.'
            )
        return precision

    def peak(self, precision: str) -> float:
        """Return the dense peak in operations a second."""
        return self.peak_tflop_per_s[self.at(precision)] * 1e12


@dataclass(frozen=True)
class Link:
    """What connects chips: `gb_per_s` in one direction from each chip, by the standard or the data
    sheet.
    """

    name: str
    gb_per_s: float
    reckoned_from: str
    source: str
    uncertain: bool


Named = TypeVar("Named", bound=Chip | Link)


def find_chip(name: str | Chip) -> Chip:
    """Return the chip with this name, whatever its capitals and spaces. A chip of your own is
    returned as it is.

    Raises:
        ValueError: no chip has that name; the nearest names are listed.
    """
    return name if isinstance(name, Chip) else _find(name, all_chips(), "chip")


def find_link(name: str) -> Link:
    """Return the link with this name, as `find_chip` does for chips."""
    return _find(name, all_links(), "link")


@cache
def all_chips() -> tuple[Chip, ...]:
    """Return every chip of chips.json, in its order."""
    rows = json.loads(DATA.read_text(encoding="utf-8"))["chips"]
    return tuple(
        Chip(**row | {key: tuple(row[key]) for key in ("also", "uncertain")}) for row in rows
    )


@cache
def all_links() -> tuple[Link, ...]:
    """Return every link of chips.json."""
    return tuple(Link(**row) for row in json.loads(DATA.read_text(encoding="utf-8"))["links"])


def _find(name: str, among: Sequence[Named], what: str) -> Named:
    if not isinstance(name, str):
        raise TypeError(f"a {what} is asked for by its name, but got {name!r}.")
    known = {
        _plain(label): item for item in among for label in (item.name, *getattr(item, "also", ()))
    }
    if _plain(name) in known:
        return known[_plain(name)]
    near = difflib.get_close_matches(_plain(name), known, n=6, cutoff=0.3) or list(known)
    names = ", ".join(list(dict.fromkeys(known[label].name for label in near))[:3])
    raise ValueError(
        f"unknown {what} {name!r}: the nearest are {names}. `python -m course_utils.estimate --list-chips` shows all."
    )


def _plain(name: str) -> str:
    # Drivers write the vendor and the series before the name: "NVIDIA GeForce RTX 4090".
    return re.sub(r"nvidia|geforce|tesla|amd|instinct|[^a-z0-9]", "", name.casefold())
