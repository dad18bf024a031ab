"""The answer in words: which device, for how long and for what money."""

import json
import math
import os
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from course_utils.estimate.prices import free_offers
from course_utils.estimate.row import HERE, Row, money, span

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
    limit = math.inf if deadline_hours is None else deadline_hours
    own = [row for row in able if not row.parts]
    if own and own[0].hours * 3600 <= FREE_S and own[0].hours_interval[1] <= limit:
        return f"{_take(own[0])}."
    priced = sorted((row for row in able if row.cost is not None), key=lambda row: row.cost or 0.0)
    order = priced or sorted(able, key=lambda row: row.hours)
    first = order[0]
    sentence = _take(first)
    if not priced:
        fastest = f"The {first.name} is the fastest: {span(first.hours_interval)}"
        sentence = f"{fastest}; no price is known"
    if first.hours_interval[1] <= limit:
        return f"{sentence}."
    late = "misses" if first.hours_interval[0] > limit else "may miss"
    sentence = f"{sentence}; it {late} your {limit:g} hours"
    safe = [row for row in order if row.hours_interval[1] <= limit]
    if not safe:
        return f"{sentence}, and none of the others makes them for sure."
    return f"{sentence}; the {safe[0].name} is the cheapest that makes them: {_amounts(safe[0])}."


def _take(row: Row) -> str:
    return f"{f'Rent the {row.name}' if row.parts else 'Stay on your own machine'}: {_amounts(row)}"


def _amounts(row: Row) -> str:
    return f"{span(row.hours_interval)}, {money(row)}"


def told_apart(rows: Sequence[Row]) -> list[str]:
    """Return a sentence on the devices whose hours overlap so far that neither is the faster."""
    able = sorted((row for row in rows if row.fits is not False), key=lambda row: row.hours)
    groups: list[list[Row]] = []
    for row in able:
        # alike if the one's estimate lies within the other's interval
        if groups and row.hours <= groups[-1][0].hours_interval[1]:
            groups[-1].append(row)
        else:
            groups.append([row])
    alike = [[row.name for row in group] for group in groups if len(group) > 1]
    return [f"{', '.join(g[:-1])} and {g[-1]} cannot be told apart in time." for g in alike]


class Sessions(NamedTuple):
    """How a job that saves a checkpoint after each epoch is cut into sessions."""

    epoch_hours: float
    kept: int  # whole epochs in a full session; 0 where an epoch is longer than a session
    sessions: int  # that the job takes
    lost_hours: float  # after the last checkpoint of a full session: to be computed again


def cut_into_sessions(hours: float, epochs: int, session_hours: float) -> Sessions:
    """Cut a job into sessions, each of which goes on from the last checkpoint of the one before."""
    epoch_hours = hours / epochs
    kept = math.floor(session_hours / epoch_hours)
    if kept == 0:  # it has to save inside the epoch, and then hardly anything is lost
        return Sessions(epoch_hours, 0, math.ceil(hours / session_hours), 0.0)
    lost_hours = session_hours - kept * epoch_hours
    return Sessions(epoch_hours, kept, math.ceil(epochs / kept), lost_hours)


def free_sessions(row: Row, epochs: int) -> list[str]:
    """Return how many sessions or weeks of what is free a job on this device would take."""
    found = []
    for offer in free_offers():
        if row.device not in offer["devices"]:
            continue
        cut = cut_into_sessions(row.hours, epochs, offer["session_hours"])
        sessions = "1 session" if cut.sessions == 1 else f"{cut.sessions:,} sessions"
        text = f"{_time(row.hours)} on a {row.device}: {sessions} of {offer['name']}"
        if offer["week_hours"]:
            used_hours = row.hours + (cut.sessions - 1) * cut.lost_hours
            text += f", or {used_hours / offer['week_hours']:.2g} weeks of its quota"
        if cut.sessions > 1:
            text += f". {_checkpoints(cut)}"
        found.append(f"{text} ({offer['what']}; {offer['date']}, {offer['source']}).")
    return found


def _checkpoints(cut: Sessions) -> str:
    epoch = f"An epoch takes {_time(cut.epoch_hours)}"
    if cut.kept == 0:
        return f"{epoch}, longer than a session: save a checkpoint within the epoch too"
    epochs = "1 epoch" if cut.kept == 1 else f"{cut.kept:,} epochs"
    lost = f"loses the {_time(cut.lost_hours)} after the last one"
    return f"{epoch}: with a checkpoint after each, a session keeps {epochs} and {lost}"


def _time(hours: float) -> str:
    return span((hours, hours))


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
