"""The answer in words: which device, for how long and for what money."""

import json
import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from course_utils.estimate.prices import free_offers
from course_utils.estimate.row import HERE, Row, money, span
from course_utils.estimate.work import KINDS

# The address of the page that answers without Python; unset, no link is shown.
PAGE = "COURSE_PAGE"
FREE_S = 600  # whoever is done in so many seconds on their own machine needs no other


def advice(rows: Sequence[Row], deadline_hours: float | None) -> str:
    """Return which device to take, in a sentence or two.

    A device that is in time in every case and costs least is recommended; without a deadline, the
    one that costs least; without prices, the fastest.
    """
    able = [row for row in rows if row.fits is not False]
    if not able:
        return "It fits none of these devices: a smaller batch, or the cures of lesson 8, may help."
    own = [row for row in able if not row.parts]
    if own and own[0].hours * 3600 <= FREE_S and not _misses(own[0], deadline_hours):
        return f"Stay on your own machine: {span(own[0].hours_interval)}, {money(own[0])}."
    priced = [row for row in able if row.cost is not None]
    order = sorted(priced, key=lambda row: row.cost or 0.0) or sorted(
        able, key=lambda row: row.hours
    )
    first = order[0]
    sentence = f"{_take(first)}: {span(first.hours_interval)}, {money(first)}"
    if not priced:
        fastest = f"The {first.name} is the fastest: {span(first.hours_interval)}"
        sentence = f"{fastest}; no price is known"
    if deadline_hours is None or first.hours_interval[1] <= deadline_hours:
        return f"{sentence}."
    late = "misses" if first.hours_interval[0] > deadline_hours else "may miss"
    deadline = f"{deadline_hours:g} hours"
    safe = [row for row in order if row.hours_interval[1] <= deadline_hours]
    sentence = f"{sentence}; it {late} your {deadline}"
    if not safe:
        return f"{sentence}, and none of the others makes them for sure."
    return (
        f"{sentence}; the {safe[0].name} is the cheapest that makes them: "
        f"{span(safe[0].hours_interval)}, {money(safe[0])}."
    )


def told_apart(rows: Sequence[Row]) -> list[str]:
    """Return a sentence on the devices whose hours overlap so far that neither is the faster."""
    able = sorted((row for row in rows if row.fits is not False), key=lambda row: row.hours)
    groups: list[list[Row]] = []
    for row in able:
        # alike if the one's estimate lies within the other's interval
        if groups and row.hours <= groups[-1][0].hours * groups[-1][0].factor:
            groups[-1].append(row)
        else:
            groups.append([row])
    alike = [[row.name for row in group] for group in groups if len(group) > 1]
    return [f"{', '.join(g[:-1])} and {g[-1]} cannot be told apart in time." for g in alike]


def sessions(row: Row) -> list[str]:
    """Return how many sessions or weeks of what is free a job on this device would take."""
    found = []
    for offer in free_offers():
        if row.device not in offer["devices"]:
            continue
        count = -(-row.hours // offer["session_hours"])
        time = span((row.hours, row.hours))
        text = (
            f"{time} on a {row.device}: {count:.0f} session{'s' * (count > 1)} of {offer['name']}"
        )
        if offer["week_hours"]:
            text += f", or {row.hours / offer['week_hours']:.2g} weeks of its quota"
        found.append(f"{text} ({offer['what']}; {offer['date']}, {offer['source']}).")
    return found


def page_link(data: dict[str, Any]) -> str:
    """Return the address of this question on the page, or "" where the page has no address.

    The page's question.js and model.js say what the fields mean.
    """
    address = os.environ.get(PAGE, "")
    if not address:
        return ""
    counted, question = data["counted"], data["question"]
    memory = data["memory"]
    names = ("batch", "parameters", "training", "precision", *KINDS)
    asked = {
        "own": {
            "counted": {name: counted[name] for name in names},
            "memory": {"lines": memory["lines"], "gathered": memory["gathered"]},
        },
        "precision": question["precision"],
        "samples": question["samples"],
        "epochs": question["epochs"],
        "count": question["count"],
        "deadline": question["deadline_hours"] or "none",
        "devices": ",".join(row["device"] for row in data["rows"] if row["device"] != HERE),
    }
    asked["own"] = json.dumps(asked["own"], separators=(",", ":"))
    return f"{address}#{urlencode(asked)}"


def _misses(row: Row, deadline_hours: float | None) -> bool:
    return deadline_hours is not None and row.hours_interval[1] > deadline_hours


def _take(row: Row) -> str:
    return f"Rent the {row.name}" if row.parts else "Stay on your own machine"
