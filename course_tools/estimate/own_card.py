"""Buy or rent: after how many hours of work a card of one's own is cheaper than a rented one."""

import math
from dataclasses import dataclass

from course_tools.estimate.checks import is_amount
from course_tools.estimate.chips import find_chip
from course_tools.estimate.prices import list_prices, used_price
from course_tools.estimate.words import amount_text, number
from course_utils.tables import wrapped

WEEK_HOURS = 168


@dataclass(frozen=True)
class BuyOrRent:
    """The two ways to have a card, in US dollars.

    Attributes:
        device: the card.
        card_price: what it costs to buy.
        rent_per_hour: what an hour costs to rent.
        electricity_per_hour: of the card alone at the full power of its data sheet.
        rent_source: where the rent comes from.
        card_source: where the price of the card comes from, or "" where it is yours.
    """

    device: str
    card_price: float
    rent_per_hour: float
    electricity_per_hour: float
    rent_source: str
    card_source: str = ""

    @property
    def break_even_hours(self) -> float:
        """Hours of work after which buying is cheaper; infinite where renting always is."""
        saved = self.rent_per_hour - self.electricity_per_hour
        return self.card_price / saved if saved > 0 else math.inf

    def __repr__(self) -> str:
        rent, electricity, price = (
            amount_text(amount, "$")
            for amount in (self.rent_per_hour, self.electricity_per_hour, self.card_price)
        )
        costs = (
            f"An hour of the {self.device} costs {rent} to rent ({self.rent_source}) and about "
            f"{electricity} of electricity if you own it."
        )
        if math.isinf(self.break_even_hours):
            return wrapped(f"{costs} Renting is always cheaper.")
        weeks = self.break_even_hours / WEEK_HOURS
        bought = f"{price} ({self.card_source})" if self.card_source else price
        return wrapped(
            f"{costs} For {bought}, buying pays off beyond {number(self.break_even_hours)} hours "
            f"of work: {number(weeks)} weeks of day and night, without the computer around it."
        )


def buy_or_rent(
    device: str,
    card_price: float | None = None,
    *,
    kwh_price: float,
    rent_per_hour: float | None = None,
) -> BuyOrRent:
    """Compare buying a card with renting one, in US dollars.

        buy_or_rent("RTX 4090", 2000, kwh_price=0.30)

    Args:
        device: the name of a chip.
        card_price: what the card costs where you would buy it, or None for the middle of its
            published second-hand price, if there is one.
        kwh_price: what a kilowatt-hour costs you.
        rent_per_hour: what an hour costs you to rent, or None for the dated list price, if there is
            one.

    Raises:
        ValueError: a price is not a positive number or neither given nor published, the chip is
            unknown, or its data sheet has no watts.
    """
    chip = find_chip(device)
    if chip.watts is None:
        raise ValueError(f"the data sheet of the {chip.name} has no watts.")
    rent_source = "your price"
    if rent_per_hour is None:
        listed = list_prices().get(chip.name)
        if listed is None:
            raise ValueError(f"no list price of the {chip.name} is known. Pass rent_per_hour=.")
        rent_per_hour, rent_source = listed.per_hour, listed.source
    used = used_price(chip.name) if card_price is None else None
    if card_price is None:
        if used is None:
            raise ValueError(f"no second-hand price of the {chip.name} is known. Pass card_price=.")
        card_price = sum(used["usd"]) / 2
    amounts = {"card_price": card_price, "kwh_price": kwh_price, "rent_per_hour": rent_per_hour}
    for name, amount in amounts.items():
        if not is_amount(amount):
            raise ValueError(f"{name} must be a positive number, but got {amount!r}.")
    return BuyOrRent(
        device=chip.name,
        card_price=card_price,
        rent_per_hour=rent_per_hour,
        electricity_per_hour=chip.watts / 1000 * kwh_price,
        rent_source=rent_source,
        card_source=f"second-hand, {used['date']}, {used['source']}" if used else "",
    )
