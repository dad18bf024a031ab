"""Write quantities as a person would, with three digits and a unit: 12.3 ms, 16.9 GB, 67 TFLOP, 4.83k."""

from __future__ import annotations

from collections.abc import Sequence

DURATIONS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
PREFIXES = (
    *(("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)),
    *(("", 1), ("m", 1e-3), ("µ", 1e-6), ("n", 1e-9)),
)


def format_seconds(seconds: float) -> str:
    """Return a duration such as "12.3 ms" or "1.5 h"."""
    return " ".join(_scaled(seconds, DURATIONS, "s"))


def format_bytes(size_bytes: float | None) -> str:
    """Return a size such as "16.9 GB", where a GB is 10^9 bytes, or "?" when it is not known."""
    return "?" if size_bytes is None else format_count(size_bytes, "B")


def format_count(number: float, unit: str = "") -> str:
    """Return a number such as "4.83k", "2.5 GFLOP" or "4.83k images"; below 10^-9 it is written with an exponent.

    A unit in capitals, such as "B" or "FLOP", takes the prefix; a word leaves it to the number.
    """
    digits, prefix = _scaled(number, PREFIXES, "")
    return f"{digits} {prefix}{unit}" if unit.isupper() else f"{digits}{prefix} {unit}".rstrip()


def _scaled(number: float, scale: Sequence[tuple[str, float]], plain: str) -> tuple[str, str]:
    # 0.9995 of a unit is 1.00 of it in three digits, where the next smaller one would say 1e+03.
    name, size = next(((name, size) for name, size in scale if abs(number) >= 0.9995 * size), (plain, 1))
    return f"{number / size:.3g}", name
