"""Checks of numbers that are asked for."""

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
