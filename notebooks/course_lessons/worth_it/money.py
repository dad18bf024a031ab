"""The first picture of lesson 8: what the job costs on each device, and how long it takes."""

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from matplotlib.transforms import Bbox

from course_lessons.worth_it.pictures import LONGEST_TITLE, title_of
from course_tools.estimate.money.advice import choose, in_one_currency, listed
from course_tools.estimate.result import Estimate
from course_tools.estimate.row import CENT, Row, amount_text
from course_tools.figures import LOOKS, MUTED, STYLE, Picture, label_text, lecture_axes, picture

FAR = 10  # a deadline so many times beyond all devices is not drawn
MOST_TICKS = 8  # on an axis
NOTE = 80  # characters in a line below the axis
SIDES = ((1, 1), (1, -1), (-1, 1), (-1, -1))
# where a name may stand, in points from the marker, the best place first
PLACES = [(12 * right, far * up) for far in (8, 40, 72) for right, up in SIDES]


@dataclass(frozen=True)
class Cross:
    """A device in the picture: a bar over its time, one over its money, a marker where they meet.

    Attributes:
        name, color, marker: as it is drawn.
        hollow: whether its interval is assumed.
        times: low, middle and high, in the unit of the axis.
        amounts: the same for money; what is free stands below all amounts.
    """

    name: str
    color: str
    marker: str
    hollow: bool
    times: tuple[float, float, float]
    amounts: tuple[float, float, float]


def draw_money(found: Estimate) -> Picture:
    """Draw money against time for each device that has a price, with intervals on both axes.

    A marker is hollow where nothing like the job was measured, so that the interval is assumed. A
    device on which the step does not fit is grey and crossed out; the deadline is a line. Less than
    a cent is drawn as a cent.

    Raises:
        ValueError: no device has a price.
    """
    rows = in_one_currency(found.rows)
    if not rows:
        raise ValueError("a picture of money needs a price. Pass prices={'T4': 0.35} to estimate.")
    title = _title(found)
    axes = lecture_axes(title, "", "money for the job (logarithmic)")
    axes.set(xscale="log", yscale="log")
    unit, unit_hours = _unit(rows)
    least = min((_amounts(row)[0] for row in rows if row.cost), default=CENT)
    free = least / 3  # a logarithmic axis has no place for nothing
    crosses = [_cross(row, unit_hours, free) for row in rows]
    for cross in crosses:
        _draw(axes, cross)
    axes.margins(0.15)
    notes = _notes(axes, found, rows, unit_hours)
    axes.set_xlabel("\n".join([f"{unit} (logarithmic)", *notes]))
    currency = next((row.currency for row in rows if row.cost), None) or "$"
    ticks = [amount for amount in _round_numbers(*axes.get_ylim()) if amount > 0.99 * least]
    if any(row.cost == 0 for row in rows):
        ticks.insert(0, free)
    _tick(axes.xaxis, _round_numbers(*axes.get_xlim()), "{:,g}".format)
    _tick(
        axes.yaxis,
        ticks,
        lambda amount: "free" if amount <= free else _amount_text(amount, currency),
    )
    _write_names(axes, crosses)
    said = "; ".join(f"{row.name} {', '.join(row.cells()[1:4])}" for row in rows)
    return picture(axes, f"{title}. Money against time, and whether it fits. {said}.")


def _title(found: Estimate) -> str:
    """Return which device `found.answer` recommends, and why."""
    deadline = found.question.deadline_hours
    row, why, _ = choose(found.rows, deadline, found.free)
    if row is None:
        return "It fits none of them"
    if why == "perhaps":
        return title_of(row.name, before="May be in time: ")
    if why == "late":
        return title_of(row.name, before="None is in time; the fastest: ")
    if not row.parts:
        return "Stay on your own machine"
    if why == "small":
        return "A small job: try your own CPU first"
    if why == "free":
        return title_of(row.name, before="Free: ")
    reason = why.capitalize()
    if not deadline:
        return title_of(row.name, before=f"{reason}: ")
    whole = f"{reason}, whole interval in time: "
    short = len(whole + row.name) > LONGEST_TITLE
    return title_of(row.name, before=f"{reason} in time: " if short else whole)


def _unit(rows: Sequence[Row]) -> tuple[str, float]:
    """Return the unit for the times of these devices, and its hours."""
    ends = [end for row in rows for end in row.hours_interval]
    middle = math.sqrt(min(ends) * max(ends))
    units = (("hours", 1.0), ("minutes", 1 / 60), ("seconds", 1 / 3600))
    return next((unit for unit in units if unit[1] <= middle), units[-1])


def _amounts(row: Row) -> tuple[float, float, float]:
    """Return the low, middle and high amount of money, at least a cent."""
    low, high = row.cost_interval or (0.0, 0.0)
    return max(low, CENT), max(row.cost or 0.0, CENT), max(high, CENT)


def _amount_text(amount: float, currency: str) -> str:
    text = amount_text(amount, currency)
    return f"up to {text}" if amount == CENT else text


def _cross(row: Row, unit_hours: float, free: float) -> Cross:
    look = LOOKS["cuda" if row.parts else "cpu"]
    color, marker, name = look["color"], look["marker"], row.name
    if row.fits is False:
        color, marker, name = MUTED, "x", f"{row.name}: does not fit"
    low, high = row.hours_interval
    return Cross(
        name=label_text(name),
        color=color,
        marker=marker,
        hollow=not row.checked,
        times=(low / unit_hours, row.hours / unit_hours, high / unit_hours),
        amounts=_amounts(row) if row.cost else (free, free, free),
    )


def _draw(axes: Axes, cross: Cross) -> None:
    (left, time, right), (low, amount, high) = cross.times, cross.amounts
    bar: Any = {"color": cross.color, "alpha": 0.35, "linewidth": 6}
    axes.plot([left, right], [amount, amount], **bar)
    axes.plot([time, time], [low, high], **bar)
    axes.plot(
        [time],
        [amount],
        color=cross.color,
        marker=cross.marker,
        markersize=14,
        markeredgewidth=3,
        markerfacecolor="white" if cross.hollow else cross.color,
    )


def _notes(axes: Axes, found: Estimate, rows: Sequence[Row], unit_hours: float) -> list[str]:
    """Draw the deadline, and return in lines what has to be known beside the axes."""
    notes = []
    deadline = found.question.deadline_hours
    if deadline:
        text = f"the deadline, {deadline:g} hour{'s' * (deadline != 1)}"
        soonest = min(row.hours_interval[0] for row in rows)
        latest = max(row.hours_interval[1] for row in rows)
        if deadline < soonest / FAR:
            notes.append(f"{text}, is far to the left")
        elif deadline > latest * FAR:
            notes.append(f"{text}, is far to the right")
        else:
            axes.axvline(deadline / unit_hours, color="black", linestyle=":")
            notes.append(f"dotted: {text}")
    if any(not row.checked for row in rows):
        notes.append("hollow: the interval is assumed")
    lines = ["; ".join(notes)] if notes else []
    absent = [row.name for row in found.rows if row not in rows]
    if absent:
        lines += textwrap.wrap(f"not drawn: no price for {listed(absent)}", NOTE)
    return [label_text(line, NOTE) for line in lines]


def _round_numbers(low: float, high: float) -> list[float]:
    """Return 1, 2, 5, 10 and so on from `low` to `high`, and fewer where there are many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    numbers = [first * 10.0**power for power in powers for first in (1, 2, 5)]
    if math.log10(high / low) * 3 > MOST_TICKS:
        numbers = numbers[::3]
    inside = [number for number in numbers if low <= number <= high]
    return inside[:: math.ceil(len(inside) / MOST_TICKS) or 1]


def _tick(axis: Axis, places: Sequence[float], text: Callable[[float], str]) -> None:
    axis.set_major_locator(FixedLocator(places))
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    axis.set_minor_locator(NullLocator())


def _write_names(axes: Axes, crosses: Sequence[Cross]) -> None:
    """Write each name beside its marker, where it covers least of what is drawn."""
    figure: Any = axes.figure
    figure.canvas.draw()  # or nothing has its final place
    taken = [box for cross in crosses for box in _boxes(axes, cross)]
    taken += [line.get_window_extent().padded(4) for line in axes.lines[3 * len(crosses) :]]
    for cross in crosses:
        texts = [_write_name(axes, cross, place) for place in PLACES]
        boxes = [text.get_window_extent() for text in texts]
        costs = [_covered(box, taken) + 10 * _outside(box, axes.bbox) for box in boxes]
        best = costs.index(min(costs))
        taken.append(boxes[best])
        for text in texts:
            if text is not texts[best]:
                text.remove()


def _write_name(axes: Axes, cross: Cross, place: tuple[int, int]) -> Text:
    return axes.annotate(
        cross.name,
        (cross.times[1], cross.amounts[1]),
        place,
        textcoords="offset points",
        color=cross.color,
        size=STYLE["font.size"],
        ha="left" if place[0] > 0 else "right",
        va="bottom" if place[1] > 0 else "top",
    )


def _boxes(axes: Axes, cross: Cross) -> list[Bbox]:
    """Return the pixels of both bars and of the marker."""
    (left, time, right), (low, amount, high) = cross.times, cross.amounts
    corners = (
        ((left, amount), (right, amount), 6),
        ((time, low), (time, high), 6),
        ((time, amount), (time, amount), 14),
    )
    return [
        Bbox(axes.transData.transform([first, last])).padded(pixels)
        for first, last, pixels in corners
    ]


def _covered(box: Bbox, others: Sequence[Bbox]) -> float:
    shared = (Bbox.intersection(box, other) for other in others)
    return sum(both.width * both.height for both in shared if both)


def _outside(box: Bbox, frame: Bbox) -> float:
    return box.width * box.height - _covered(box, [frame])
