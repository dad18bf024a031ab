"""Quantities with their units, in three digits."""

from collections.abc import Sequence

DURATIONS = (
    ("d", 86400),
    ("h", 3600),
    ("min", 60),
    ("s", 1),
    ("ms", 1e-3),
    ("µs", 1e-6),
    ("ns", 1e-9),
)
PREFIXES = (("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1))


def format_seconds(seconds: float) -> str:
    """Return a duration such as "12.3 ms" or "1.5 h"."""
    return " ".join(_scaled(seconds, DURATIONS, "s"))


def format_bytes(size_bytes: float | None) -> str:
    """Return a size such as "16.9 GB", where a GB is 10^9 bytes, or "?" when it is not known."""
    return "?" if size_bytes is None else format_count(size_bytes, "B")


def format_count(number: float, unit: str = "") -> str:
    """Return a number such as "4.83k", "2.5 GFLOP" or "4.83k images".

    A unit in capitals, such as "B" or "FLOP", takes the prefix; a word leaves it to the number.
    A number below 1 has no prefix.
    """
    digits, prefix = _scaled(number, PREFIXES, "")
    return f"{digits} {prefix}{unit}" if unit.isupper() else f"{digits}{prefix} {unit}".rstrip()


def _scaled(number: float, scale: Sequence[tuple[str, float]], plain: str) -> tuple[str, str]:
    for name, size in scale:
        # 0.9995 of a unit is 1.00 of it in three digits; the next smaller one would say 1e+03.
        if abs(number) >= 0.9995 * size:
            return f"{number / size:.3g}", name
    return f"{number:.3g}", plain
