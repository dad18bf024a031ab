"""Checks of numbers that are asked for."""

import difflib
import re
from collections.abc import Iterable
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


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ": the nearest are ..." with three known names like another, or "".

    Capitals, marks and the owner before a slash do not matter.
    """
    names = {plain_name(each): each for each in known}
    typed = plain_name(name)
    found = difflib.get_close_matches(typed, names, n=3, cutoff=0.5)
    found += [each for each in names if each.startswith(typed)][: 3 - len(found)] if typed else []
    listed = ", ".join(names[each] for each in dict.fromkeys(found))
    return f": the nearest are {listed}" if listed else ""


def plain_name(name: str) -> str:
    """Return the letters and digits of a name, without its owner."""
    return re.sub(r"[\W_]", "", name.rpartition("/")[2].casefold())
