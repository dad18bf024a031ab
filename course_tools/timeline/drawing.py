"""The picture of a timeline: its lanes below one another."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from course_tools.figures import (
    BLUE,
    GREEN,
    MUTED,
    ORANGE,
    PINK,
    SKY,
    Picture,
    lecture_axes,
    picture,
)
from course_tools.timeline.lanes import Lane, Span, covered_s, union
from course_utils.units import DURATIONS, format_seconds

COLORS = {  # Okabe and Ito's
    "host": BLUE,
    "noted": BLUE,
    "launches": SKY,
    "copies": PINK,
    "exchange": GREEN,
    "device": ORANGE,
}
# What the share of a lane is where no device works. Of the host a profiler records only operations,
# and not the Python around them.
MEANING = {"host": "recorded", "noted": "of the time"}
FEW = 40  # spans of a lane that are drawn with an edge each,
WIDE = 4e-3  # if none takes less than this share of the axis, because the edge would hide it
MOST = 12  # lanes of a run that are drawn
FINE = 2e-4  # of the axis: what is closer together than this is drawn as one, if there is much
LETTER = 0.0150  # of the axes' width, for one letter of 20 pt


def draw_runs(runs: Mapping[str, Sequence[Lane]], title: str) -> Picture:
    """Draw several runs, by their names, below one another on one time axis that begins with each:
    names above, work solid, waiting hatched, nothing where nothing happened.

    Raises:
        ValueError: the title is longer than 45 characters.
    """
    ends = {name: max((lane.end_s for lane in lanes), default=0.0) for name, lanes in runs.items()}
    end_s = max(ends.values()) or 1.0
    fitting = (each for each in DURATIONS if end_s >= 2 * each[1])
    unit, size = next(fitting, DURATIONS[-1])
    axes = lecture_axes(title, unit)
    rows, labels, y = [], [], 0.0
    for name, every in runs.items():
        lanes, others = _most_used(every)
        words = f"{name}: {format_seconds(ends[name])}"
        words += f" (and {others:,} more lanes)" if others else ""
        axes.text(0, y, words, va="center", fontweight="bold", parse_math=False)
        y -= 0.75
        for lane in lanes:
            _draw(axes, y, lane, size, end_s)
            rows.append(y)
            share = f"{lane.busy_s / (ends[name] or 1):.0%}"
            labels.append(f"{lane.name}\n{share} {MEANING.get(lane.kind, 'busy')}")
            y -= 1.0
        y -= 0.2
    figure: Any = axes.figure
    figure.set_figheight(max(7.2, 0.75 * -y))  # two lines of text for each lane
    axes.set_yticks(rows, labels, parse_math=False)
    axes.set(xlim=(0, end_s / size), ylim=(y + 0.5, 0.5))
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    said = [f"{name}: {in_words(lanes, ends[name])}" for name, lanes in runs.items()]
    return picture(axes, " ".join(said), colors=32)


def in_words(lanes: Sequence[Lane], end_s: float) -> str:
    """Return in words what the picture of these lanes shows."""
    rows = []
    shown, others = _most_used(lanes)
    for lane in shown:
        names = list(dict.fromkeys(span.name for span in lane.named))
        words = f"{lane.name} ({', '.join(names[:6])})" if names else lane.name
        words += f": busy for {lane.busy_s / (end_s or 1):.0%}"
        waited_s = sum(span.seconds for span in union(lane.waits))
        if waited_s:
            words += f", waiting for {waited_s / (end_s or 1):.0%}"
        rows.append(words)
    if others:
        rows.append(f"{others:,} more lanes")
    return f"A timeline of {format_seconds(end_s)}. " + "; ".join(rows) + "."


def _most_used(lanes: Sequence[Lane]) -> tuple[list[Lane], int]:
    """Return the lanes that are drawn, in their order, and how many are left out."""
    if len(lanes) <= MOST:
        return list(lanes), 0
    used = sorted(lanes, key=lambda lane: covered_s(lane.work + lane.waits), reverse=True)[:MOST]
    kept = {id(lane) for lane in used}
    return [lane for lane in lanes if id(lane) in kept], len(lanes) - MOST


def _draw(axes: Any, y: float, lane: Lane, size: float, end_s: float) -> None:
    """Draw a lane at a height; `size` is the seconds of the axis' unit."""
    work, named, waits = (_merged(spans, end_s) for spans in (lane.work, lane.named, lane.waits))
    lane = replace(lane, work=work, named=named, waits=waits)
    high = 0.42 if named else 0.8  # the work leaves room for the names above it
    color = COLORS[lane.kind]
    pale = {"facecolor": color, "alpha": 0.22, "edgecolor": "white"}
    axes.broken_barh(_bars(named, size), (y - 0.4, 0.8), **pale)
    shortest_s = min((span.seconds for span in work), default=0.0)
    has_edges = len(work) <= FEW and shortest_s > WIDE * end_s
    edge, width = ("white", 1.5) if has_edges else (color, 0.5)
    look = {"facecolor": color, "edgecolor": edge, "linewidth": width}
    axes.broken_barh(_bars(work, size), (y - 0.4, high), **look)
    hatch = {"facecolor": "white", "edgecolor": MUTED, "hatch": "///", "linewidth": 0}
    axes.broken_barh(_bars(waits, size), (y - 0.4, high), **hatch)
    _write_names(axes, y + 0.2 if named else y - 0.4 + high / 2, lane, size, end_s)


def _write_names(axes: Any, y: float, lane: Lane, size: float, end_s: float) -> None:
    """Write the names of a lane's spans into those that are long enough, or before the first."""
    words = {"va": "center", "parse_math": False}
    fits = False
    for span in lane.named or (*lane.work, *lane.waits):
        if span.seconds > LETTER * end_s * (len(span.name) + 0.5):
            middle = (span.start_s + span.end_s) / 2 / size
            on_blue = lane.kind == "host" and not lane.named and span in lane.work
            ink = {"color": "white"} if on_blue else {}
            axes.text(middle, y, span.name, ha="center", **ink, **words)
            fits = True
    if lane.work and not lane.named and not fits:
        first = lane.work[0]
        if first.start_s > LETTER * end_s * (len(first.name) + 1):
            axes.text(first.start_s / size, y, f"{first.name} ", ha="right", **words)


def _merged(spans: tuple[Span, ...], end_s: float) -> tuple[Span, ...]:
    many = len(spans) * FINE > 1
    return tuple(union(spans, FINE * end_s)) if many else spans


def _bars(spans: Iterable[Span], size: float) -> list[tuple[float, float]]:
    return [(span.start_s / size, span.seconds / size) for span in spans]
