"""Money: the user's own prices first, and dated list prices with their provider and source."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from course_tools.estimate.checks import is_amount
from course_tools.estimate.chips import Chip, find_chip

PRICES_FILE = Path(__file__).parent / "prices.json"
# of offers, the one that a job is compared by first; the first is in a data centre
OFFERS = ("on demand", "eight at once", "may be interrupted", "in homes")


@dataclass(frozen=True)
class Price:
    """The price of an hour of one device, with its currency and source.

    Attributes:
        per_hour: what an hour costs.
        source: "your price", or the provider, the date and the address of a list price.
        currency: such as "$".
        provider: who asks that price, or "" where it is yours.
        kind: of offer, one of `OFFERS`, or "" where it is yours.
    """

    per_hour: float
    source: str
    currency: str = "$"
    provider: str = ""
    kind: str = ""

    @property
    def offer(self) -> str:
        """Who asks the price for what: "RunPod, on demand", or "your price"."""
        return f"{self.provider}, {self.kind}" if self.provider else "your price"


@cache
def price_file() -> dict[str, Any]:
    """Return the file of prices: "providers", their "prices", and what is "free"."""
    return dict(json.loads(PRICES_FILE.read_text(encoding="utf-8")))


def free_offers() -> list[dict[str, Any]]:
    """Return what is free for how many hours, each with its date and source."""
    return list(price_file()["free"])


def providers() -> list[str]:
    """Return the names of the providers whose list prices are known."""
    return [provider["name"] for provider in price_file()["providers"]]


def list_prices(provider: str | None = None) -> dict[str, Price]:
    """Return a list price in US dollars for each device that has one: that of the first of `OFFERS`
    in which the device is offered, and of those the lowest.

    Args:
        provider: whose prices, or None for those of all.

    Raises:
        ValueError: the provider is not known.
    """
    if provider is not None and provider not in providers():
        known = ", ".join(providers())
        raise ValueError(f"no prices of {provider!r} are known, only of {known}.")
    found: dict[str, Price] = {}
    for listed in price_file()["prices"]:
        if provider not in (None, listed["provider"]):
            continue
        said = [listed.get(name) for name in ("provider", "kind", "what", "date", "source")]
        for device, usd in listed["usd_per_hour"].items():
            source, kind = ", ".join(filter(None, said)), listed["kind"]
            price = Price(usd, source, "$", listed["provider"], kind)
            found[device] = min(price, found.get(device, price), key=_rank)
    return found


def _rank(price: Price) -> tuple[int, float]:
    return OFFERS.index(price.kind), price.per_hour


def prices_by_device(
    own: Mapping[str, float] | str | None,
    here: str,
    currency: str = "$",
    chips: Sequence[Chip] = (),
) -> dict[str, Price]:
    """Return the price of each device that has one: the user's own, else a list price.

    Args:
        own: price of an hour by device, with names as in `find_chip`, of `chips`, or `here`; or the
            name of the one provider whose list prices are taken.
        here: the name of the user's own machine, which costs nothing unless `own` says otherwise.
        currency: of the user's own prices; list prices are used only with "$".
        chips: those that are asked about, among them the user's own.

    Raises:
        TypeError: the prices are neither a mapping nor the name of a provider.
        ValueError: a price is negative or not a number, or a device or provider is unknown.
    """
    if not isinstance(own or {}, (Mapping, str)):
        raise TypeError(
            f"prices is a dictionary such as {{'T4': 0.35}}, or a provider such as 'RunPod', "
            f"but got {own!r}."
        )
    found = {here: Price(0.0, "no price given, so none is counted", currency)}
    if currency == "$":
        found |= list_prices(own if isinstance(own, str) else None)
    typed = {} if own is None or isinstance(own, str) else own
    named = {here, *(chip.name for chip in chips)}
    for name, price in typed.items():
        device = name if name in named else find_chip(name).name
        if not (price == 0 or is_amount(price)):
            raise ValueError(
                f"an hour of {name} must have a price that is a number and not negative, but got "
                f"{price!r}."
            )
        found[device] = Price(float(price), "your price", currency)
    return found


def billing(names: Sequence[str], devices: Sequence[str] = ()) -> list[str]:
    """Return in sentences what a rented card costs beside its hours of work.

    Args:
        names: the providers; "" stands for the user's own price.
        devices: the cards.
    """
    known = [one for one in price_file()["providers"] if one["name"] in names]
    how = [f"{one['name']}: {one['what']}" for one in known]
    if "" in names or not known:
        how.append("others may bill a whole hour at least")
    disk, spot = (price_file()[name] for name in ("stopped", "spot"))
    less = [f"{one['what']} ({one['date']}, {one['source']})" for one in spot["providers"]]
    for one in spot["prices"]:
        if one["device"] in devices:
            where = f"{one['provider']}, {one['date']}, {one['source']}"
            less.append(f"the {one['device']} ${one['usd_per_hour']:.2f} per hour ({where})")
    return [
        f"Beside these hours you pay for starting, uploading data and idling ({'; '.join(how)}).",
        f"A stopped machine is billed for its disk: {disk['usd_per_gb_month']:.2f} dollars per GB "
        f"and month at {disk['provider']} ({disk['date']}, {disk['source']}).",
        f"Capacity that may be taken away (spot) costs less: {'; '.join(less)}. Save checkpoints, "
        f"and pass what you are asked for as prices=.",
    ]


def used_price(device: str) -> dict[str, Any] | None:
    """Return for what a card was sold second-hand ("usd", from low to high), when and by whom."""
    return next((one for one in price_file()["used"] if one["device"] == device), None)
