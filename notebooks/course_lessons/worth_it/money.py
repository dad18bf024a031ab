"""The first picture of the lesson: what the job costs on each device, and how long it takes.

The page "Is it worth it?" draws the same: money to the right, time upwards, a full marker in time.
"""

import math
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from matplotlib.transforms import Bbox

from course_lessons.data.models import ResNet50
from course_lessons.worth_it.pictures import LONGEST_TITLE, title_of
from course_tools.estimate import estimate
from course_tools.estimate.answer import Answer
from course_tools.estimate.answers import Answers
from course_tools.estimate.choice import choose, comparable
from course_tools.estimate.words import CENT, amount_text, listed, span
from course_tools.figures import (
    BLUE,
    GREEN,
    MUTED,
    ORANGE,
    STYLE,
    Picture,
    label_text,
    lecture_axes,
    picture,
)

FAR = 10  # a deadline so many times beyond all devices is not drawn
MOST_TICKS = 8  # on an axis
NOTE = 80  # characters in a line below the axis
# hours that a person would write at an axis: second, minute, ten, hour, six, day, week, month, year
TIMES = [1 / 3600, 1 / 60, 1 / 6, 1, 6, 24, 168, 720, 8760, 87600]
# colour, marker and whether it is filled, by what the picture says of a device
LOOKS: dict[str, dict[str, Any]] = {
    "in time": {"color": BLUE, "marker": "s", "markerfacecolor": BLUE},
    "late, or may be late": {"color": ORANGE, "marker": "s", "markerfacecolor": "white"},
    "your own machine": {"color": GREEN, "marker": "o", "markerfacecolor": GREEN},
    "does not fit": {"color": MUTED, "marker": "x"},
}
# where a name may stand, in points from the marker, the best place first
OFFSETS = [
    (16 * right, -far * right * up)  # a bar rises, so there is room on the right below
    for far in (0, 14, 20, 26, 52, 78)
    for up in (1, -1)
    for right in (1, -1)
]
BESIDE = 1.15  # how many times as far to the right the next of what is free stands
FARTHER = 2  # pixels that a name may cover rather than stand a point farther from its marker

# the low, middle and high amount of money, and the same of the hours
Spread = tuple[tuple[float, ...], tuple[float, ...]]


def draw_imagenet() -> Picture:
    """Draw what ResNet-50's 90 epochs on ImageNet take and cost, within two days."""
    found = estimate(
        ResNet50(),
        torch.empty(1, 3, 224, 224),
        batch=256,
        samples=1_281_167,
        epochs=90,
        deadline_hours=48,
        devices=["T4", "RTX 4090", "A100", "H100"],
    )
    return draw_money(found)


def draw_money(found: Answers) -> Picture:
    """Draw time against money for each device that has a price, with the interval of both.

    A marker is full where the whole interval is in time. What is free stands at the left, less than
    a cent is drawn as a cent, and the deadline is a line.

    Raises:
        ValueError: no device has a price.
    """
    rows = comparable(found.rows)
    if not rows:
        raise ValueError("a picture of money needs a price. Pass prices={'T4': 0.35} to estimate.")
    rows = [*found.free, *rows]
    title = _title(found)
    axes = lecture_axes(title, "", "time (logarithmic)")
    axes.set(xscale="log", yscale="log")
    least = min((_amounts(row)[0] for row in rows if row.cost), default=CENT)
    free = least / 3  # a logarithmic axis has no place for nothing
    deadline = found.deadline_hours
    spreads = [_spread(row, free) for row in rows]
    _set_apart(spreads, free)
    for row, spread in zip(rows, spreads, strict=True):
        _draw(axes, spread, _state(row, deadline))
    axes.margins(0.15)
    notes = _notes(axes, found, rows)
    axes.set_xlabel("\n".join(["money for the job (logarithmic)", *notes]))
    _draw_ticks(axes, rows, least, free)
    _draw_legend(axes, {_state(row, deadline) for row in rows})
    _write_names(axes, rows, spreads, deadline)
    said = "; ".join(f"{row.name} {', '.join(row.cells()[1:4])}" for row in rows)
    return picture(axes, f"{title}. Time against money, and whether it fits. {said}.")


def _title(found: Answers) -> str:
    """Return which device `found.answer` recommends, and why."""
    deadline = found.deadline_hours
    row, why, _ = choose(found.rows, deadline, found.free)
    if row is None:
        return "It fits none of them"
    starts = {
        "perhaps": "May be in time: ",
        "late": "None is in time; the fastest: ",
        "free": "Free: ",
    }
    if why in starts:
        return title_of(row.name, before=starts[why])
    if not row.machine:
        return "Stay on your own machine"
    if why == "small":
        return "A small job: try your own CPU first"
    if why == "minutes":
        return "A short job: measure your own machine first"
    reason = why.capitalize()
    if not deadline:
        return title_of(row.name, before=f"{reason}: ")
    whole = f"{reason} that meets the deadline: "
    short = len(whole + row.name) > LONGEST_TITLE
    return title_of(row.name, before=f"{reason} in time: " if short else whole)


def _state(row: Answer, deadline_hours: float | None) -> str:
    """Return what the picture says of a device: one of `LOOKS`."""
    if row.fits is False:
        return "does not fit"
    if deadline_hours is not None and row.hours_interval[1] > deadline_hours:
        return "late, or may be late"
    return "in time" if row.machine else "your own machine"


def _amounts(row: Answer) -> tuple[float, float, float]:
    """Return the low, middle and high amount of money, at least a cent."""
    low, high = row.cost_interval or (0.0, 0.0)
    return max(low, CENT), max(row.cost or 0.0, CENT), max(high, CENT)


def _spread(row: Answer, free: float) -> Spread:
    """Return the low, middle and high amount, and the same of the hours."""
    low, high = row.hours_interval
    return _amounts(row) if row.cost else (free, free, free), (low, row.hours, high)


def _set_apart(spreads: list[Spread], free: float) -> None:
    """Move the bars of what is free to places side by side, or they would cover each other."""
    free_ones = [number for number, (amounts, _) in enumerate(spreads) if amounts[1] == free]
    for count, number in enumerate(free_ones):
        beside = free * BESIDE ** (count - (len(free_ones) - 1) / 2)
        spreads[number] = (beside,) * 3, spreads[number][1]


def _draw(axes: Axes, spread: Spread, state: str) -> None:
    (cheap, amount, dear), (low, hours, high) = spread
    look = LOOKS[state]
    bar: Any = {"color": look["color"], "alpha": 0.35, "linewidth": 8, "solid_capstyle": "round"}
    axes.plot([cheap, amount, dear], [low, hours, high], **bar)
    axes.plot([amount], [hours], markersize=14, markeredgewidth=3, **look)


def _notes(axes: Axes, found: Answers, rows: Sequence[Answer]) -> list[str]:
    """Draw the deadline, and return in lines what has to be known beside the axes."""
    notes = []
    deadline = found.deadline_hours
    if deadline:
        text = f"deadline of {deadline:g} hour{'s' * (deadline != 1)}"
        soonest = min(row.hours_interval[0] for row in rows)
        latest = max(row.hours_interval[1] for row in rows)
        if soonest / FAR <= deadline <= latest * FAR:
            axes.axhline(deadline, color="black", linestyle=":")
            notes.append(f"dotted: the {text}")
        else:
            notes.append(f"the {text} is far {'below' if deadline < soonest else 'above'}")
    absent = [row.name for row in found.rows if row not in rows]
    if absent:
        notes += textwrap.wrap(f"not drawn: no price for {listed(absent)}", NOTE)
    return [label_text(line, NOTE) for line in notes]


def _draw_ticks(axes: Axes, rows: Sequence[Answer], least: float, free: float) -> None:
    currency = next((row.currency for row in rows if row.cost), None) or "$"
    amounts = [amount for amount in _round_numbers(*axes.get_xlim()) if amount > 0.99 * least]
    if any(row.cost == 0 for row in rows):
        amounts.insert(0, free)

    def money_text(amount: float) -> str:
        if amount <= free:
            return "free"
        text = amount_text(amount, currency)
        return f"up to {text}" if amount == CENT else text

    low, high = axes.get_ylim()
    times = [hours for hours in TIMES if low <= hours <= high]
    if len(times) < 2:
        unit = max((size for size in TIMES[:4] if size <= high), default=TIMES[0])
        times = [unit * count for count in _round_numbers(low / unit, high / unit)]
    _tick(axes.xaxis, amounts, money_text)
    _tick(axes.yaxis, times, lambda hours: "1 day" if hours == 24 else span((hours, hours)))


def _round_numbers(low: float, high: float) -> list[float]:
    """Return 1, 2, 5, 10 and so on from `low` to `high`, and fewer where there are many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    numbers = [first * 10.0**power for power in powers for first in (1, 2, 5)]
    if math.log10(high / low) * 3 > MOST_TICKS:
        numbers = numbers[::3]
    inside = [number for number in numbers if low <= number <= high]
    return inside[:: math.ceil(len(inside) / MOST_TICKS) or 1]


def _tick(axis: Axis, positions: Sequence[float], text: Callable[[float], str]) -> None:
    axis.set_major_locator(FixedLocator(positions))
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    axis.set_minor_locator(NullLocator())


def _draw_legend(axes: Axes, states: set[str]) -> None:
    """Draw below the axes what a marker says, for the states that occur."""
    size: Any = {"linestyle": "", "markersize": 14, "markeredgewidth": 3}
    shown = [state for state in LOOKS if state in states]
    handles = [Line2D([], [], label=state, **size, **LOOKS[state]) for state in shown]
    figure: Any = axes.figure
    figure.legend(
        handles=handles,
        ncols=len(shown),
        frameon=False,
        handletextpad=0.2,
        fontsize=STYLE["font.size"],
        loc="outside lower center",
    )


def _write_names(
    axes: Axes, rows: Sequence[Answer], spreads: Sequence[Spread], deadline_hours: float | None
) -> None:
    """Write each name beside its marker, where it covers least of what is drawn."""
    figure: Any = axes.figure
    figure.canvas.draw()  # or nothing has its final place
    taken = [box for spread in spreads for box in _boxes(axes, spread)]
    taken += [line.get_window_extent().padded(4) for line in axes.lines[2 * len(rows) :]]
    names: list[Bbox] = []
    for row, spread in zip(rows, spreads, strict=True):
        state = _state(row, deadline_hours)
        texts = [_write_name(axes, row, state, spread, offset) for offset in OFFSETS]
        boxes = [text.get_window_extent() for text in texts]
        costs = [
            _covered(box, taken)
            + 20 * (_covered(box, names) + _outside(box, axes.bbox))
            + FARTHER * abs(offset[1])
            for box, offset in zip(boxes, OFFSETS, strict=True)
        ]
        best = costs.index(min(costs))
        names.append(boxes[best].padded(2))
        for text in texts:
            if text is not texts[best]:
                text.remove()


def _write_name(
    axes: Axes, row: Answer, state: str, spread: Spread, offset: tuple[int, int]
) -> Text:
    (_, amount, _), (_, hours, _) = spread
    name = f"{row.name}: {state}" if row.fits is False else row.name
    return axes.annotate(
        label_text(name),
        (amount, hours),
        offset,
        textcoords="offset points",
        color=LOOKS[state]["color"],
        size=STYLE["font.size"],
        ha="left" if offset[0] > 0 else "right",
        va="center",
    )


def _boxes(axes: Axes, spread: Spread) -> list[Bbox]:
    """Return the pixels of a bar, in pieces because it rises, and of its marker."""
    (cheap, amount, dear), (low, hours, high) = spread
    points = [(cheap, low), (amount, hours), (dear, high)]
    start, marker, end = axes.transData.transform(points)
    halves = [(start, marker), (marker, end)]
    steps = [one + (other - one) * part / 6 for one, other in halves for part in range(7)]
    return [Bbox([marker, marker]).padded(12), *(Bbox([step, step]).padded(8) for step in steps)]


def _covered(box: Bbox, others: Sequence[Bbox]) -> float:
    shared = (Bbox.intersection(box, other) for other in others)
    return sum(both.width * both.height for both in shared if both)


def _outside(box: Bbox, frame: Bbox) -> float:
    return box.width * box.height - _covered(box, [frame])
