"""Checks of numbers that are asked for."""

import difflib
import re
from collections.abc import Iterable, Mapping
from numbers import Integral, Real

LARGEST = 1e30  # no amount that anybody means is larger


def is_amount(value: object) -> bool:
    """Return whether a value is a number above zero."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    return number and bool(0 < value < LARGEST)  # type: ignore[operator]


def check_positive(name: str, value: object) -> int:
    """Return a positive integer that a computer can calculate with, also one of NumPy's, as an int.

    Raises:
        ValueError: it is no such number.
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not 1 <= int(value) < 10**18:  # type: ignore[call-overload]
        shown = repr(value)
        shown = shown if len(shown) < 40 else f"{shown[:20]}..., which is too large"
        raise ValueError(f"{name} must be a positive integer, but got {shown}.")
    return int(value)  # type: ignore[call-overload]


def check_deadline(hours: object) -> None:
    """Raise ValueError unless a deadline is a positive number of hours, or None."""
    if hours is not None and not is_amount(hours):
        raise ValueError(f"deadline_hours must be a positive number, or None, but got {hours!r}.")


def nearest(name: str, known: Mapping[str, str]) -> str:
    """Return ": the nearest are ..." with up to three known names that may be meant, or "".

    They begin with the same word, as those of a family do, or else are a slip away: "resnet51" and
    "Llama 4" have a family here, "densnet121" is a slip, and "yolov8n" is neither.

    Args:
        name: as it was typed.
        known: by the names that are compared, the names that are said.
    """
    typed, word = plain_name(name), _first_word(name)
    plain = {plain_name(each): said for each, said in known.items()}
    words = {plain_name(each): _first_word(each) for each in known}
    family = [each for each in plain if word and words[each] == word]
    if not family and len(word) > 2:  # "mobilenet" of "mobilenetv3"
        family = [each for each in plain if words[each].startswith(word)]
    found = difflib.get_close_matches(typed, family, n=9, cutoff=0.0)
    found = found or difflib.get_close_matches(typed, plain, n=9, cutoff=0.8)
    found = sorted(found, key=lambda each: not each.startswith(typed))
    few = list(dict.fromkeys(plain[each] for each in found))[:3]
    return f": the nearest {'is' if len(few) == 1 else 'are'} {', '.join(few)}" if few else ""


def spelled(
    what: str, typed: str, known: Iterable[str], also: Mapping[str, str] | None = None
) -> str:
    """Return the known name that is meant, whatever its capitals and marks.

    Args:
        what: kind of name, for the error.
        typed: as it was typed.
        known: the names.
        also: what else people call them, in plain letters.

    Raises:
        ValueError: none is meant; the known names are listed.
    """
    names = {plain_name(each): each for each in known}
    plain = plain_name(str(typed))
    if plain not in names and plain not in (also or {}):
        raise ValueError(f"unknown {what} {typed!r}. Pass one of {', '.join(names.values())}.")
    return names.get(plain) or (also or {})[plain]


def _first_word(name: str) -> str:
    """Return the letters with which a name begins, without its owner."""
    return re.split(r"[\W\d_]", _without_owner(name).casefold())[0]


def plain_name(name: str) -> str:
    """Return the letters and digits of a name, without its owner."""
    return re.sub(r"[\W_]", "", _without_owner(name).casefold())


def _without_owner(name: str) -> str:
    # the 16 of "vit-b/16" is no name
    return re.sub(r".*/(?=.*[A-Za-z])", "", name)
