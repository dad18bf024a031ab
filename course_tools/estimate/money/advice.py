"""The answer in words: which device, for how long and for what money."""

import json
import math
import os
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from course_tools.estimate.money.free import cut_into_sessions, first_free, offer_of, sessions_text
from course_tools.estimate.row import HERE, Row, money, span

# The address of the page that answers without Python; unset, no link is shown.
PAGE = "COURSE_PAGE"
FREE_S = 600  # a job that takes so many seconds is not worth renting for
MOST_GROUPS = 2  # that the answer names of those too close to call
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

    row: Row | None
    why: str
    cheaper: Row | None = None


def choose(rows: Sequence[Row], deadline_hours: float | None, free: Sequence[Row] = ()) -> Choice:
    """Choose a device: one's own if it needs minutes, then what is free, then what costs least.

    What is rented is in time with its whole interval. Without a price that can be compared it is
    the fastest one.

    Args:
        rows: the devices.
        deadline_hours: when it must be done, or None.
        free: the same job on what is free, in the order of preference.
    """
    able = [row for row in rows if row.fits is not False]
    limit = math.inf if deadline_hours is None else deadline_hours
    own = [row for row in able if not row.parts]
    for row in own:
        if row.hours * 3600 <= FREE_S and row.hours_interval[1] <= limit:
            return Choice(row, "cheapest")
    if able and not own and _is_small(_fastest(able)):
        return Choice(_fastest(able), "small")
    offer = first_free(free, limit)
    if offer and not any(_surely_faster(row, offer) for row in own):
        return Choice(offer, "free")
    if not able:
        return Choice(None, "fits none")
    quick = [row for row in able if row.hours_interval[1] <= min(limit, FREE_S / 3600)]
    if quick and not own:
        return Choice(_fastest(quick), "minutes")
    in_time = [row for row in able if row.hours_interval[1] <= limit]
    perhaps = [row for row in able if row.hours_interval[0] <= limit < row.hours_interval[1]]
    if not in_time:
        return Choice(_fastest(perhaps or able), "perhaps" if perhaps else "late")
    priced = [row for row in in_one_currency(able) if row.hours_interval[0] <= limit]
    priced.sort(key=lambda row: row.cost or 0.0)
    sure = [row for row in priced if row.hours_interval[1] <= limit]
    best = sure[0] if sure else _fastest(in_time)
    cheaper = priced[0] if priced and priced[0] != best else None
    return Choice(best, "cheapest" if sure else "fastest", cheaper)


def _fastest(rows: Sequence[Row]) -> Row:
    return min(rows, key=lambda row: row.hours)


def _is_small(row: Row) -> bool:
    """Return whether a CPU has probably done the job in a minute too."""
    known = row.flops is not None and row.flops <= SMALL_FLOPS
    return known and row.limit != "memory" and row.hours_interval[1] * 3600 <= SMALL_S


def in_one_currency(rows: Sequence[Row]) -> list[Row]:
    """Return the rows whose prices can be compared: those in the user's own currency.

    The examples are in dollars, so any other currency is the user's. What is free is so in all.
    """
    priced = [row for row in rows if row.price is not None]
    others = [row.currency for row in priced if row.currency not in (None, "$")]
    currency = others[0] if others else "$"
    return [row for row in priced if row.currency == currency or row.cost == 0]


def advice(rows: Sequence[Row], deadline_hours: float | None, free: Sequence[Row] = ()) -> str:
    """Return which device to take, in a sentence or two; `choose` says by what rule."""
    row, why, cheaper = choose(rows, deadline_hours, free)
    if row is None:
        several = any(each.count > 1 for each in rows)
        sharded = ", shards= (FSDP)" if several else ""
        return (
            f"It fits none of these devices: a smaller batch{sharded}, or the cures of lesson 9, "
            f"may help."
        )
    limit = "" if deadline_hours is None else f"your {deadline_hours:g} hours"
    if deadline_hours == 1:
        limit = "your hour"
    amounts, name = _amounts(row), _the(row)
    if why == "late":
        return f"None of them makes {limit}: the fastest is {name}, {amounts}."
    if why == "perhaps":
        return f"None makes {limit} with its whole interval. {_start(name)} may: {amounts}."
    if why == "fastest":
        if not limit:
            return f"{_start(name)} is the fastest: {amounts}."
        sentence = f"The whole interval of {name} is within {limit}: {amounts}."
        if cheaper is None:
            return sentence
        return f"{sentence} {_start(_the(cheaper))} may miss them: {_amounts(cheaper)}."
    if why == "free":
        return _take_what_is_free(row, rows)
    if why == "small":
        return (
            f"The job is small: {name} takes {amounts}. Your own CPU is probably enough: "
            f"measure a step on it and pass this_machine=."
        )
    if why == "minutes":
        return (
            f"The job is short: {name} takes {amounts}. Before you rent, measure a step on your "
            f"own machine and pass this_machine=."
        )
    sentence = f"Rent {name}: {amounts}." if row.parts else f"Stay on {name}: {amounts}."
    if cheaper:
        less = "is free" if cheaper.cost == 0 else f"costs less ({money(cheaper)})"
        return f"{sentence} {_start(_the(cheaper))} {less} but may miss {limit}."
    faster = [each for each in in_one_currency(rows) if _surely_faster(each, row)]
    if row.parts or row.hours * 3600 <= FREE_S or not faster:
        return sentence
    least = min(faster, key=lambda each: each.cost or 0.0)
    return (
        f"{sentence} {_start(_the(least))} would take {span(least.hours_interval)}, {money(least)}."
    )


def _take_what_is_free(row: Row, rows: Sequence[Row]) -> str:
    """Return the advice to take a free offer, and what renting would save if that is hours."""
    cut = cut_into_sessions(row.hours_interval[1], 1, offer_of(row)["session_hours"])
    takes = f"a {row.name} takes" if row.count == 1 else f"{row.name} take"
    sentence = f"Free: {takes} {span(row.hours_interval)}, in {sessions_text(cut)}."
    faster = [each for each in in_one_currency(rows) if _surely_faster(each, row)]
    if row.hours_interval[1] < 1 or not faster:
        return sentence
    least = min(faster, key=lambda each: each.cost or 0.0)
    return (
        f"{sentence} {_start(_the(least))} would take {span(least.hours_interval)}, {money(least)}."
    )


def _surely_faster(one: Row, other: Row) -> bool:
    return one.fits is not False and one.hours_interval[1] < other.hours_interval[0]


def _the(row: Row) -> str:
    if not row.parts:
        return "your own machine"
    return row.name if row.count > 1 else f"the {row.name}"


def _start(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _amounts(row: Row) -> str:
    unpriced = "; no price is known here"
    return span(row.hours_interval) + (unpriced if row.price is None else f", {money(row)}")


def told_apart(rows: Sequence[Row]) -> list[str]:
    """Return a sentence on the devices that are too close to call: whose intervals all overlap."""
    able = sorted((row for row in rows if row.fits is not False), key=lambda row: row.hours)
    groups: list[list[Row]] = []
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


def listed(names: Sequence[str]) -> str:
    """Return names as "A, B and C"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def page_link(data: dict[str, Any]) -> str:
    """Return the address of this question on the page, or "" where the page has no address.

    The page's question.js and model.js say what the fields mean.
    """
    address = os.environ.get(PAGE, "")
    if not address:
        return ""
    question = data["question"]
    own = {name: data[name] for name in ("counted", "memory")}
    asked = {
        "own": json.dumps(own, separators=(",", ":")),
        "precision": question["precision"],
        "samples": question["samples"],
        "epochs": question["epochs"],
        "count": question["count"],
        "deadline": question["deadline_hours"] or "none",
        "devices": ",".join(row["device"] for row in data["rows"] if row["device"] != HERE),
    }
    return f"{address}#{urlencode(asked)}"
