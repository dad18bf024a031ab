"""The answer in words: which device, for how long and for what money."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from course_tools.estimate.answer import Answer
from course_tools.estimate.free import best_free, cut_into_sessions, offer_of, sessions_text
from course_tools.estimate.prices import KINDS
from course_tools.estimate.words import listed, span

FREE_S = 600  # a job that takes so many seconds is not worth renting for
MOST_GROUPS = 2  # that the answer names of those too close to call
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
            this one is the fastest.
        cheaper: the cheapest device, where it costs less but only may be in time, or None.
    """

    row: Answer | None
    why: str
    cheaper: Answer | None = None


def choose(
    rows: Sequence[Answer], deadline_hours: float | None, free: Sequence[Answer] = ()
) -> Choice:
    """Choose a device: one's own if it needs minutes, then what is free, then what costs least.

    What is rented meets the deadline even at the slow end of its interval. Without a price that
    can be compared it is the fastest one. An unchecked device is passed over for a checked one
    that takes about as much.

    Args:
        rows: the devices.
        deadline_hours: when it must be done, or None.
        free: the same job on what is free.
    """
    able = [row for row in rows if row.fits is not False]
    limit = math.inf if deadline_hours is None else deadline_hours
    own = [row for row in able if row.machine is None]
    for row in own:
        if row.hours * 3600 <= FREE_S and row.hours_interval[1] <= limit:
            return Choice(row, "cheapest")
    if able and not own and _is_small(_fastest(able)):
        return Choice(_fastest(able), "small")
    offer = best_free(free, limit)
    if offer and not any(_surely_faster(row, offer) for row in own):
        return Choice(offer, "free")
    if not able:
        return Choice(None, "fits none")
    quick = [row for row in able if row.hours_interval[1] <= min(limit, FREE_S / 3600)]
    if quick and not own:
        return Choice(least(quick, "hours"), "minutes")
    in_time = [row for row in able if row.hours_interval[1] <= limit]
    if not in_time:
        perhaps = [row for row in able if row.hours_interval[0] <= limit]
        if not perhaps:
            return Choice(_fastest(able), "late")
        return Choice(least(perhaps, "hours"), "perhaps")
    priced = [row for row in comparable(able) if row.hours_interval[0] <= limit]
    sure = [row for row in priced if row.hours_interval[1] <= limit]
    best = least(sure, "cost") if sure else least(in_time, "hours")
    cheaper = min(priced, key=lambda row: row.cost or 0.0, default=None)
    if cheaper in sure:
        cheaper = None
    return Choice(best, "cheapest" if sure else "fastest", cheaper)


def _fastest(rows: Sequence[Answer]) -> Answer:
    return min(rows, key=lambda row: row.hours)


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
    kinds = [kind for kind in KINDS if any(price.kind == kind for price in prices)]
    like = ("", *kinds[:1])
    return [
        row
        for row in rows
        if row.price and (row.cost == 0 or (row.currency == currency and row.price.kind in like))
    ]


def advice(
    rows: Sequence[Answer],
    deadline_hours: float | None,
    free: Sequence[Answer] = (),
    takes_own: bool = True,
    aside: str = "",
) -> str:
    """Return which device to take, in a few sentences; `choose` says by what rule.

    Args:
        rows, deadline_hours, free: as for `choose`.
        takes_own: whether the question takes this_machine=.
        aside: a sentence on that device, said before those on others.
    """
    row, why, cheaper = choose(rows, deadline_hours, free)
    if row is None:
        return "It fits none of these devices."
    limit = "" if deadline_hours is None else f"your {deadline_hours:g} hours"
    if deadline_hours == 1:
        limit = "your hour"
    amounts, name = _amounts(row), the(row)
    own = " and pass this_machine=" if takes_own else ""
    others: list[str] = []
    if why == "late":
        first = f"None of them meets {limit}: the fastest is {name}, {amounts}."
    elif why == "perhaps":
        first = f"None surely meets {limit}. {_start(name)} may: {amounts}."
    elif why == "fastest" and not limit:
        first = f"{_start(name)} is the fastest: {amounts}."
    elif why == "fastest":
        first = f"{_start(name)} meets {limit} even at the slow end: {amounts}."
        if cheaper:
            others = [f"{_start(the(cheaper))} may miss them: {_amounts(cheaper)}."]
    elif why == "free":
        first = _take_what_is_free(row)
        if row.hours_interval[1] >= 1:
            others = _faster(row, rows)
    elif why == "small":
        first = (
            f"The job is small: {name} takes {amounts}. Your own CPU is probably enough: "
            f"measure a step on it{own}."
        )
    elif why == "minutes":
        first = (
            f"The job is short: {name} takes {amounts}. Before you rent, measure a step on your "
            f"own machine{own}."
        )
    else:
        first = f"Rent {name}: {amounts}." if row.machine else f"Stay on {name}: {amounts}."
        others = _passed_over(row, rows, deadline_hours)
        if cheaper:
            cost = cheaper.cost_text(bare=True) + _doubt(cheaper)
            less = "is free" if cheaper.cost == 0 else f"costs less ({cost})"
            others.append(f"{_start(the(cheaper))} {less} but may miss {limit}.")
        elif not row.machine and row.hours * 3600 > FREE_S:
            others += _faster(row, rows)
    if aside and others:  # it is not what they are compared with
        others[0] = f"As asked, {others[0][:1].lower()}{others[0][1:]}"
    return " ".join(filter(None, [first, aside, *others]))


def _passed_over(best: Answer, rows: Sequence[Answer], deadline_hours: float | None) -> list[str]:
    """Return a sentence on the cheapest offer of another kind and one on the cheapest unchecked
    device, where they are in time and cost less than the best at the dear end.
    """
    able = [row for row in rows if row.fits is not False]
    like = comparable(able)
    limit = math.inf if deadline_hours is None else deadline_hours
    less = [
        row
        for row in able
        if row.currency == best.currency
        and row.hours_interval[1] <= limit
        and _dearest(row) < _dearest(best)
    ]
    unlike = sorted((row for row in less if row not in like), key=_dearest)
    unchecked = sorted((row for row in less if row in like), key=_dearest)
    sentences = []
    for row in unlike[:1]:
        cost, offer = row.cost_text(bare=True) + _doubt(row), row.price
        if offer:
            but = f"but {offer.kind} ({offer.provider})"
            sentences.append(f"{_start(the(row))} costs less ({cost}), {but}.")
    for row in unchecked[:1]:
        cost = row.cost_text(bare=True)
        sentences.append(f"{_start(the(row))} costs less ({cost}), but is unchecked.")
    return sentences


def _dearest(row: Answer) -> float:
    return row.cost_interval[1] if row.cost_interval else math.inf


def _take_what_is_free(row: Answer) -> str:
    cut = cut_into_sessions(row.hours_interval[1], 1, offer_of(row)["session_hours"])
    takes = f"a {row.name} takes" if row.count == 1 else f"{row.name} take"
    return f"Free: {takes} {_span(row)}, in {sessions_text(cut)}{_doubt(row)}."


def _faster(row: Answer, rows: Sequence[Answer]) -> list[str]:
    """Return a sentence on the cheapest of the surely faster devices, if there is one."""
    faster = [each for each in comparable(rows) if _surely_faster(each, row)]
    if not faster:
        return []
    cheapest = min(faster, key=lambda each: each.cost or 0.0)
    return [f"{_start(the(cheapest))} would take {_amounts(cheapest)}."]


def _surely_faster(one: Answer, other: Answer) -> bool:
    return one.fits is not False and one.hours_interval[1] < other.hours_interval[0]


def the(row: Answer) -> str:
    """Return a device as it is said within a sentence."""
    if row.machine is None:
        return "your own machine"
    return row.name if row.count > 1 else f"the {row.name}"


def _start(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _amounts(row: Answer) -> str:
    """Return time, cost and who asks it, and whether the interval is only assumed."""
    if row.price is None:
        return f"{_span(row)}; no price is known here{_doubt(row)}"
    offer = f" ({row.price.offer})" if row.machine and row.cost else ""
    return f"{_span(row)}, {row.cost_text(bare=True)}{offer}{_doubt(row)}"


def _span(row: Answer) -> str:
    """Return the time, with the speed of answers."""
    if row.parts or not row.tokens_per_s:
        return span(row.hours_interval)
    return f"{span(row.hours_interval)}, {row.rate_text()}"


def _doubt(row: Answer) -> str:
    return "" if row.checked else ", unchecked"


def too_close_to_call(rows: Sequence[Answer]) -> list[str]:
    """Return a sentence on the devices that are too close to call: whose intervals all overlap."""
    able = sorted((row for row in rows if row.fits is not False), key=lambda row: row.hours)
    groups: list[list[Answer]] = []
    for first in able:
        # all that contain the moment at which the interval of one begins
        low = first.hours_interval[0]
        group = [row for row in able if row.hours_interval[0] <= low <= row.hours_interval[1]]
        groups.append(group)
    largest = [one for one in groups if not any(set(one) < set(other) for other in groups)]
    named = (listed([row.name for row in group]) for group in largest if group[1:])
    alike = list(dict.fromkeys(named))
    if not alike:
        return []
    groups_text = "; ".join(alike[:MOST_GROUPS])
    more = len(alike) - MOST_GROUPS
    if more > 0:
        groups_text += f"; and {more} more group{'' if more == 1 else 's'}"
    return [f"Too close to call, because their intervals overlap: {groups_text}."]
