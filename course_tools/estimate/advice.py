"""The answer in words: which device, for how long and for what money."""

import math
from collections.abc import Sequence

from course_tools.estimate.answer import Answer
from course_tools.estimate.choice import SHORT_S, choose, comparable, surely_faster
from course_tools.estimate.free import cut_into_sessions, offer_of, sessions_text
from course_tools.estimate.words import listed, span

MOST_GROUPS = 2  # that the answer names of those too close to call
# the first sentence, by why a device was chosen
FIRST = {
    "small": "The job is small: {name} takes {amounts}. Your own CPU is probably enough: measure "
    "a step on it{own}.",
    "minutes": "The job is short: {name} takes {amounts}. Before you rent, measure a step on your "
    "own machine{own}.",
    "cheapest": "Rent {name}: {amounts}.",
    "cheapest, your own": "Stay on {name}: {amounts}.",
    "fastest": "{Name} is the fastest: {amounts}.",
    "fastest, in time": "{Name} meets {limit} even at the slow end: {amounts}.",
    "perhaps": "None surely meets {limit}. {Name} may: {amounts}.",
    "late": "None of them meets {limit}: the fastest is {name}, {amounts}.",
}


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
    others: list[str] = []
    if why == "free" and row.hours_interval[1] >= 1:
        others = _faster(row, rows)
    elif why == "fastest" and cheaper:
        others = [f"{_start(the(cheaper))} may miss them: {_amounts(cheaper)}."]
    elif why == "cheapest":
        others = _beside_cheapest(row, cheaper, rows, deadline_hours)
    if aside and others:  # it is not what they are compared with
        others[0] = f"As asked, {others[0][:1].lower()}{others[0][1:]}"
    first = _first_sentence(row, why, deadline_hours, takes_own)
    return " ".join(filter(None, [first, aside, *others]))


def _first_sentence(row: Answer, why: str, deadline_hours: float | None, takes_own: bool) -> str:
    if why == "free":
        return _take_what_is_free(row)
    if why == "cheapest" and row.machine is None:
        why = "cheapest, your own"
    if why == "fastest" and deadline_hours is not None:
        why = "fastest, in time"
    return FIRST[why].format(
        name=the(row),
        Name=_start(the(row)),
        amounts=_amounts(row),
        limit="" if deadline_hours is None else _limit(deadline_hours),
        own=" and pass this_machine=" if takes_own else "",
    )


def _limit(deadline_hours: float) -> str:
    return "your hour" if deadline_hours == 1 else f"your {deadline_hours:g} hours"


def _beside_cheapest(
    best: Answer, cheaper: Answer | None, rows: Sequence[Answer], deadline_hours: float | None
) -> list[str]:
    """Return what costs less but is not like it, or may be late; or what is faster than one's own
    machine.
    """
    said = _passed_over(best, rows, deadline_hours)
    if cheaper and deadline_hours is not None:
        cost = cheaper.cost_text(bare=True) + _doubt(cheaper)
        less = "is free" if cheaper.cost == 0 else f"costs less ({cost})"
        return [*said, f"{_start(the(cheaper))} {less} but may miss {_limit(deadline_hours)}."]
    if best.machine is None and best.hours * 3600 > SHORT_S:
        return said + _faster(best, rows)
    return said


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
    faster = [each for each in comparable(rows) if surely_faster(each, row)]
    if not faster:
        return []
    cheapest = min(faster, key=lambda each: each.cost or 0.0)
    return [f"{_start(the(cheapest))} would take {_amounts(cheapest)}."]


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
