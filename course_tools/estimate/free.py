"""What is free: which jobs Colab and Kaggle carry, and in how many sessions."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from course_tools.estimate.answer import Answer
from course_tools.estimate.prices import free_offers
from course_tools.estimate.words import number, span
from course_utils.tables import wrapped

SAVED = "What it has found must be saved before a session ends"
LAUNCHER_S = 600  # that several cards have to save, because they need a launcher


def offer_of(row: Answer) -> dict[str, Any]:
    """Return the free offer that a row belongs to.

    Raises:
        ValueError: it belongs to none.
    """
    for offer in free_offers():
        if offer["name"] == row.where:
            return offer
    raise ValueError(f"{row.name} belongs to no free offer.")


def carries(row: Answer, limit_hours: float = math.inf) -> bool:
    """Return whether a free offer is a plan for a job, even at the slow end of its interval.

    It is one where the job fits, ends before `limit_hours`, and takes no more than one session, or
    the quota of one week where the provider promises a quota.
    """
    offer = offer_of(row)
    most = offer["week_hours"] or offer["session_hours"]
    return row.fits is not False and row.hours_interval[1] <= min(most, limit_hours)


def best_free(free: Sequence[Answer], limit_hours: float = math.inf) -> Answer | None:
    """Return the fastest free offer that carries a job, or None.

    One that saves only minutes is passed over for the first in the order of the file.
    """
    able = [row for row in free if carries(row, limit_hours)]
    if not able:
        return None
    fastest = min(able, key=lambda row: row.hours)
    saved_s = 3600 * (able[0].hours - fastest.hours)
    return fastest if saved_s > LAUNCHER_S else able[0]


class Sessions(NamedTuple):
    """The sessions of a job that saves a checkpoint after each epoch."""

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


def free_sessions(row: Answer, epochs: int | None) -> str:
    """Return how many sessions and weeks a job would take on what is free, or "".

    What does not fit cannot be run, and a job that surely takes less than an hour needs no plan.

    Args:
        row: one of `Answers.free`.
        epochs: of a training that saves a checkpoint after each, or None for an inference.
    """
    if row.fits is False or row.hours_interval[1] < 1:
        return ""
    offer = offer_of(row)
    cut = cut_into_sessions(row.hours, epochs or 1, offer["session_hours"])
    text = f"{row.name}: {span((row.hours, row.hours))} in {sessions_text(cut)}"
    if offer["week_hours"]:
        weeks = (row.hours + (cut.sessions - 1) * cut.lost_hours) / offer["week_hours"]
        about = f"about {weeks:,.0f} weeks" if weeks > 1.5 else "about a week"
        text += f", or {'part of a week' if weeks < 0.5 else about} of its quota"
    if cut.sessions > 1:
        text += f". {_checkpoints(cut) if epochs else SAVED}"
    return wrapped(f"{text} ({offer['what']}; {offer['date']}, {offer['source']}).")


def sessions_text(cut: Sessions) -> str:
    """Return the number of sessions, such as "about 5 sessions"."""
    return "one session" if cut.sessions == 1 else f"about {number(cut.sessions)} sessions"


def _checkpoints(cut: Sessions) -> str:
    epoch = f"An epoch takes {span((cut.epoch_hours, cut.epoch_hours))}"
    if cut.kept == 0:
        return f"{epoch}, longer than a session: save a checkpoint within the epoch too"
    epochs = "1 epoch" if cut.kept == 1 else f"{cut.kept:,} epochs"
    lost = f"loses the {span((cut.lost_hours, cut.lost_hours))} after the last one"
    return f"{epoch}: with a checkpoint after each, a session keeps {epochs} and {lost}"
