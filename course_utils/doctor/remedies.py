"""The words for every cause that the doctor can name: read from `remedies.ini`, one section a cause."""

from __future__ import annotations

import configparser
import pkgutil
from pathlib import Path

MAKEFILE = Path(__file__).parents[2] / "Makefile"  # there in a checkout of the course, and nowhere else
INSTALL = "`make lab` in the course's folder" if MAKEFILE.exists() else "pytorch.org/get-started/locally"

REMEDIES = configparser.ConfigParser(interpolation=None, delimiters="=")
REMEDIES.read_string((pkgutil.get_data(__package__, "remedies.ini") or b"").decode())
PLACES = REMEDIES["places"]


def explain(cause: str, place: str, **words: object) -> tuple[str, str]:
    """Return why and the fix of one cause, for one place, with what was found filled in.

    Args:
        cause: a section of `remedies.ini`.
        place: a key of its section `places`.
        words: what was found, for the words in braces.
    """
    section = REMEDIES[cause]
    there = REMEDIES[section.get("places", cause)].get(f"fix.{place}", section["fix"])
    words = {"place": PLACES[place], "install": INSTALL, **words}
    why, fix = (text.replace("\n", " ").format(**words) for text in (section["why"], there))
    return why, fix
