"""Which device to take: rules, of which the first that applies decides."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from course_tools.estimate.answer import Answer
from course_tools.estimate.free import best_free
from course_tools.estimate.prices import OFFERS

SHORT_S = 600  # a job that takes so many seconds is not worth renting for
AS_MUCH = 1.25  # times the cost or time of an unchecked device are about as much
# A CPU has probably done a job in a minute if it has no more operations than that, and a card does
# not take longer than two, even at the slow end, nor is it limited by its memory. The CPUs that
# pytorch-image-models publishes (i7-12700H and i9-10940X, one image at a time in fp32) reach 110
# GFLOP/s or more with nine in ten networks.
SMALL_FLOPS, SMALL_S = 60 * 110e9, 120


class Choice(NamedTuple):
    """The device to take, and why.

    Attributes:
        row: the device, or None where the step fits none.
        why: "free" where a free offer carries the job; "small" where one's own CPU probably does;
            "minutes" where it is not worth renting for; "cheapest" or "fastest" of those whose
            whole interval is in time (all of them, where there is no deadline); "perhaps" where no
            such device is and this one has the best chance; "late" where none can be in time and
            this one is the fastest; "fits none" where the step fits no device.
        cheaper: the cheapest device, where it costs less but only may be in time, or None.
    """

    row: Answer | None
    why: str
    cheaper: Answer | None = None


@dataclass(frozen=True)
class Case:
    """What the rules look at.

    Attributes:
        able: the devices that the step fits, or may fit.
        free: the same job on what is free.
        limit_hours: when it must be done; infinite where there is no deadline.
    """

    able: list[Answer]
    free: Sequence[Answer]
    limit_hours: float

    @property
    def own(self) -> list[Answer]:
        """The user's own machine, if it was measured."""
        return [row for row in self.able if row.machine is None]

    def in_time(self, rows: Sequence[Answer]) -> list[Answer]:
        """Return what meets the deadline even at the slow end of its interval."""
        return [row for row in rows if row.hours_interval[1] <= self.limit_hours]

    def perhaps_in_time(self, rows: Sequence[Answer]) -> list[Answer]:
        """Return what meets the deadline at the fast end of its interval."""
        return [row for row in rows if row.hours_interval[0] <= self.limit_hours]


def own_in_minutes(case: Case) -> Choice | None:
    """Stay on one's own machine where it needs but minutes."""
    able = [row for row in case.in_time(case.own) if row.hours * 3600 <= SHORT_S]
    return Choice(able[0], "cheapest") if able else None


def small(case: Case) -> Choice | None:
    """Name the CPU that everybody has, where nobody measured it and it is probably enough."""
    if case.own or not case.able:
        return None
    fastest = _fastest(case.able)
    return Choice(fastest, "small") if _is_small(fastest) else None


def free_offer(case: Case) -> Choice | None:
    """Take what is free and carries the job, unless one's own machine is surely faster."""
    offer = best_free(case.free, case.limit_hours)
    if offer is None or any(surely_faster(row, offer) for row in case.own):
        return None
    return Choice(offer, "free")


def fits_none(case: Case) -> Choice | None:
    """Choose nothing where the step fits nowhere."""
    return None if case.able else Choice(None, "fits none")


def in_minutes(case: Case) -> Choice | None:
    """Measure before renting for minutes."""
    quick = [row for row in case.in_time(case.able) if row.hours_interval[1] <= SHORT_S / 3600]
    return Choice(least(quick, "hours"), "minutes") if quick and not case.own else None


def cheapest(case: Case) -> Choice | None:
    """Take the least cost of what is surely in time."""
    priced = case.perhaps_in_time(comparable(case.able))
    sure = case.in_time(priced)
    if not sure:
        return None
    cheaper = _least_cost(priced)
    return Choice(least(sure, "cost"), "cheapest", None if cheaper in sure else cheaper)


def fastest(case: Case) -> Choice | None:
    """Take the fastest of what is surely in time, where no such price can be compared."""
    sure = case.in_time(case.able)
    cheaper = _least_cost(case.perhaps_in_time(comparable(case.able)))
    return Choice(least(sure, "hours"), "fastest", cheaper) if sure else None


def perhaps(case: Case) -> Choice | None:
    """Take the fastest of what may be in time, where nothing surely is."""
    able = case.perhaps_in_time(case.able)
    return Choice(least(able, "hours"), "perhaps") if able else None


def late(case: Case) -> Choice:
    """Take the fastest where nothing can be in time."""
    return Choice(_fastest(case.able), "late")


RULES: tuple[Callable[[Case], Choice | None], ...] = (
    own_in_minutes,
    small,
    free_offer,
    fits_none,
    in_minutes,
    cheapest,
    fastest,
    perhaps,
    late,
)


def choose(
    rows: Sequence[Answer], deadline_hours: float | None, free: Sequence[Answer] = ()
) -> Choice:
    """Choose a device, by the first of `RULES` that has an answer.

    An unchecked device is passed over for a checked one that takes about as much.

    Args:
        rows: the devices.
        deadline_hours: when it must be done, or None.
        free: the same job on what is free.
    """
    able = [row for row in rows if row.fits is not False]
    case = Case(able, free, math.inf if deadline_hours is None else deadline_hours)
    return next(filter(None, (rule(case) for rule in RULES)))


def _fastest(rows: Sequence[Answer]) -> Answer:
    return min(rows, key=lambda row: row.hours)


def _least_cost(rows: Sequence[Answer]) -> Answer | None:
    return min(rows, key=lambda row: row.cost or 0.0, default=None)


def least(rows: Sequence[Answer], what: str) -> Answer:
    """Return the row of the least "hours" or "cost", each at the upper end of its interval.

    An unchecked row has to be less by a quarter.
    """

    def weighed(row: Answer) -> float:
        _, upper = getattr(row, f"{what}_interval")
        return float(upper) * (1.0 if row.checked else AS_MUCH)

    return min(rows, key=weighed)


def _is_small(row: Answer) -> bool:
    """Return whether a CPU has probably done the job in a minute too."""
    known = row.flops is not None and row.flops <= SMALL_FLOPS
    return known and row.limit != "memory" and row.hours_interval[1] * 3600 <= SMALL_S


def comparable(rows: Sequence[Answer]) -> list[Answer]:
    """Return the rows whose prices can be compared: those in the user's own currency, and of the
    first kind of offer that any of them has, or of the user's own price.

    The examples are in dollars, so any other currency is the user's. What is free is so in all.
    """
    prices = [row.price for row in rows if row.price is not None]
    others = [price.currency for price in prices if price.currency != "$"]
    currency = others[0] if others else "$"
    kinds = [kind for kind in OFFERS if any(price.kind == kind for price in prices)]
    like = ("", *kinds[:1])
    return [
        row
        for row in rows
        if row.price and (row.cost == 0 or (row.currency == currency and row.price.kind in like))
    ]


def surely_faster(one: Answer, other: Answer) -> bool:
    """Return whether one device is faster than another wherever in its interval the truth lies."""
    return one.fits is not False and one.hours_interval[1] < other.hours_interval[0]
