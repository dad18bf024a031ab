"""Quantities as a person says them: times, amounts of money, numbers and lists."""

import math
from collections.abc import Sequence

# a unit, its seconds, and how many of it a person would say, at least and at most
UNITS = (
    ("year", 365 * 86400, 1, math.inf),
    ("day", 86400, 2, 365),
    ("hour", 3600, 1, 96),
    ("minute", 60, 1, 120),
    ("second", 1, 1, 120),
    ("millisecond", 1e-3, 1, 1000),
    ("microsecond", 1e-6, 0, 1000),
)
CENT = 0.01


def span(hours: tuple[float, float]) -> str:
    """Return an interval of time in the units that a person would use: "20 to 50 hours".

    Both ends have the same unit where one suits both.
    """
    ends = [3600 * end for end in hours]
    for unit, size, least, most in UNITS:
        first, last = (end / size for end in ends)
        if first >= least and last <= most:
            low, high = number(first), number(last)
            return _with_unit(low, unit) if low == high else f"{low} to {_with_unit(high, unit)}"
    low, high = (span((end, end)) for end in hours)
    return f"{low} to {high}"


def _with_unit(digits: str, unit: str) -> str:
    return f"{digits} {unit}{'' if digits == '1' else 's'}"


def number(value: float) -> str:
    """Return a number with two digits, or all digits before the point: "0.35", "7.2", "1,240"."""
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.2g}"


def amounts(interval: tuple[float, float], currency: str) -> str:
    """Return an interval of money such as "$1.20 to $3.40"."""
    low, high = (amount_text(amount, currency) for amount in interval)
    if interval[0] < CENT / 2 <= interval[1]:
        return f"up to {high}"
    return low if low == high else f"{low} to {high}"


def amount_text(amount: float, currency: str) -> str:
    """Return an amount of money: a sign such as "$" stands before it, a word behind it."""
    if 0 < amount < CENT / 2:
        return f"less than {amount_text(CENT, currency)}"
    return with_currency(f"{amount:,.0f}" if amount >= 9.995 else f"{amount:.2f}", currency)


def with_currency(digits: str, currency: str) -> str:
    """Return digits with the sign of a currency before them, or its name behind."""
    return f"{digits} {currency}" if currency.isalpha() else f"{currency}{digits}"


def listed(names: Sequence[str]) -> str:
    """Return names as "A, B and C"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def sentence(text: str) -> str:
    """Return a text as a sentence, with a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."
