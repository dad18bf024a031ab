"""Money: the user's own prices first, and dated examples with their source for some devices."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any

from course_tools.estimate.chips import Chip, find_chip

PRICES_FILE = Path(__file__).parent / "prices.json"


@dataclass(frozen=True)
class Price:
    """The price of an hour of one device, with its currency and source."""

    per_hour: float
    source: str
    currency: str = "$"


def free_offers() -> list[dict[str, Any]]:
    """Return what is free for how many hours, each with its date and source."""
    return list(json.loads(PRICES_FILE.read_text(encoding="utf-8"))["free"])


def prices_by_device(
    own: Mapping[str, float] | None,
    here: str,
    currency: str = "$",
    chips: Sequence[Chip] = (),
) -> dict[str, Price]:
    """Return the price of each device that has one: the user's own, else a dated example.

    Args:
        own: price of an hour by device; names as in `find_chip`, of `chips`, or `here`.
        here: the name of the user's own machine, which costs nothing unless `own` says otherwise.
        currency: of the user's own prices; the examples are used only with "$".
        chips: those that are asked about, among them the user's own.

    Raises:
        TypeError: the prices are not a mapping.
        ValueError: a price is negative or not a number, or a device is unknown.
    """
    if not isinstance(own or {}, Mapping):
        raise TypeError(f"prices is a dictionary such as {{'T4': 0.35}}, but got {own!r}.")
    found = {here: Price(0.0, "no price given, so none is counted", currency)}
    examples = json.loads(PRICES_FILE.read_text(encoding="utf-8"))["prices"]
    for row in examples if currency == "$" else ():
        found[row["device"]] = Price(
            row["usd_per_hour"], f"example in US dollars, {row['date']}, {row['source']}"
        )
    named = {here, *(chip.name for chip in chips)}
    for name, price in (own or {}).items():
        device = name if name in named else find_chip(name).name
        found[device] = own_price(name, price, currency)
    return found


def own_price(name: str, price: Any, currency: str) -> Price:
    """Return the user's own price of an hour of a device.

    Raises:
        ValueError: the price is negative or not a number.
    """
    number = isinstance(price, (Real, Decimal)) and not isinstance(price, bool)
    if not number or not 0 <= price < float("inf"):
        raise ValueError(
            f"an hour of {name} must have a price that is a number and not negative, "
            f"but got {price!r}."
        )
    return Price(float(price), "your price", currency)


def read_prices(text: str) -> tuple[tuple[str, float], ...]:
    """Read prices such as "T4=0.35, A100 80GB=1.30".

    Raises:
        ValueError: a part is not a name, "=" and a number.
    """
    found = []
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, number = part.partition("=")
        try:
            found.append((name.strip(), float(number if name else "")))
        except ValueError:
            raise ValueError(f"{part!r} is not a price. Write T4=0.35, A100 80GB=1.30") from None
    return tuple(found)
