"""Money: the user's own prices first, and dated examples with their source for some devices."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from course_utils.estimate.chips import find_chip

DATA = Path(__file__).parent / "prices.json"


@dataclass(frozen=True)
class Price:
    """What an hour of one device costs, in US dollars or the user's own currency, and who says so."""

    per_hour: float
    source: str


def price_of(device: str, own: Mapping[str, Price]) -> Price | None:
    """Return the user's price of a device, else a dated example, else None."""
    return own.get(device) or _examples().get(device)


def own_prices(prices: Mapping[str, float] | None, measured: str) -> dict[str, Price]:
    """Check the user's prices an hour, and return them by the names of this course.

    Args:
        prices: price by device; names as in `find_chip`, or `measured`.
        measured: the name of the user's own machine.

    Raises:
        ValueError: a price is negative or no number, or a device is unknown.
    """
    if not isinstance(prices or {}, Mapping):
        raise TypeError(f"prices is a dictionary such as {{'T4': 0.35}}, but got {prices!r}.")
    found = {}
    for name, price in (prices or {}).items():
        if isinstance(price, bool) or not isinstance(price, (int, float)) or not 0 <= price < float("inf"):
            raise ValueError(
                f"the price of an hour of {name} must be a number that is not negative, but got {price!r}."
            )
        found[name if name == measured else find_chip(name).name] = Price(float(price), "your price")
    return found


@cache
def _examples() -> dict[str, Price]:
    rows: list[dict[str, Any]] = json.loads(DATA.read_text(encoding="utf-8"))["prices"]
    return {row["device"]: Price(row["usd_per_hour"], f"example, {row['date']}, {row['source']}") for row in rows}
