"""The lanes of a timeline, one for each thread or stream, and their picture."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from course_tools.figures import BLUE, GREEN, MUTED, ORANGE, Picture, lecture_axes, picture
from course_utils.text import DURATIONS, format_seconds

COLORS = {  # Okabe and Ito's
    "host": BLUE,
    "launches": "#56B4E9",
    "copies": "#CC79A7",
    "exchange": GREEN,
    "device": ORANGE,
}
FEW = 40  # spans of a lane that are drawn with an edge each,
WIDE = 4e-3  # if none takes less than this share of the axis, because the edge would hide it
LETTER = 0.0155  # of the axes' width, for one letter of 20 pt


@dataclass(frozen=True)
class Span:
    """Something that went on from `start_s` to `end_s`, in seconds from its timeline's start."""

    name: str
    start_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        """How long it went on."""
        return self.end_s - self.start_s


@dataclass(frozen=True)
class Lane:
    """The work and the waits of one thread or stream.

    Attributes:
        name: of the thread or stream.
        kind: "host", "launches", "copies", "exchange" (between GPUs) or "device".
        work: operations, kernels or copies; where they are nested, the outermost ones.
        named: the outermost blocks that the program has given a name with `record_function`.
        waits: when it did nothing but wait for a device.
    """

    name: str
    kind: str
    work: tuple[Span, ...]
    named: tuple[Span, ...] = ()
    waits: tuple[Span, ...] = ()

    @property
    def busy_s(self) -> float:
        """The seconds in which work went on, of two things at once counted once."""
        return sum(span.seconds for span in union(self.work))

    def between(self, start_s: float, end_s: float) -> "Lane":
        """Return what lies between two moments; the first of them is its new beginning."""

        def cut(spans: Iterable[Span]) -> tuple[Span, ...]:
            inside = [span for span in spans if span.end_s > start_s and span.start_s < end_s]
            return tuple(
                Span(
                    span.name,
                    max(span.start_s, start_s) - start_s,
                    min(span.end_s, end_s) - start_s,
                )
                for span in inside
            )

        return replace(self, work=cut(self.work), named=cut(self.named), waits=cut(self.waits))

    @property
    def end_s(self) -> float:
        """When the last work, block or waiting ended."""
        return max((span.end_s for span in self.work + self.named + self.waits), default=0.0)


def union(spans: Iterable[Span]) -> list[Span]:
    """Return the times in which at least one span goes on, in order and without overlaps."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start_s):
        if merged and span.start_s <= merged[-1].end_s:
            last = merged.pop()
            span = Span(last.name, last.start_s, max(last.end_s, span.end_s))
        merged.append(span)
    return merged


def outermost(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return the spans that lie in no other one, in order."""
    outer: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start_s, -span.end_s)):
        if not outer or span.end_s > outer[-1].end_s:
            outer.append(span)
    return tuple(outer)


def without(spans: Iterable[Span], holes: Iterable[Span]) -> tuple[Span, ...]:
    """Return what is left of the spans where no hole is, in order."""
    left = list(spans)
    for hole in holes:
        before = [Span(span.name, span.start_s, min(span.end_s, hole.start_s)) for span in left]
        after = [Span(span.name, max(span.start_s, hole.end_s), span.end_s) for span in left]
        left = [span for span in before + after if span.seconds > 0]
    return tuple(sorted(left, key=lambda span: span.start_s))


def draw_runs(runs: Mapping[str, Sequence[Lane]], title: str) -> Picture:
    """Draw several runs, by their names, below one another on one time axis that begins with each:
    names above, work solid, waiting hatched, nothing where nothing happened.

    Raises:
        ValueError: the title is longer than 45 characters.
    """
    ends = {name: max((lane.end_s for lane in lanes), default=0.0) for name, lanes in runs.items()}
    end_s = max(ends.values()) or 1.0
    units = [(unit, size) for unit, size in DURATIONS if end_s >= 2 * size]
    unit, size = units[0] if units else DURATIONS[-1]
    axes = lecture_axes(title, unit)
    rows, labels, y = [], [], 0.0
    for name, lanes in runs.items():
        words = f"{name}: {format_seconds(ends[name])}"
        axes.text(0, y, words, va="center", fontweight="bold", parse_math=False)
        y -= 0.75
        for lane in lanes:
            _draw(axes, y, lane, size, end_s)
            rows.append(y)
            labels.append(f"{lane.name}\n{lane.busy_s / (ends[name] or 1):.0%} busy")
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
    for lane in lanes:
        names = list(dict.fromkeys(span.name for span in lane.named))
        words = f"{lane.name} ({', '.join(names[:6])})" if names else lane.name
        words += f": busy for {lane.busy_s / (end_s or 1):.0%}"
        waited_s = sum(span.seconds for span in union(lane.waits))
        if waited_s:
            words += f", waiting for {waited_s / (end_s or 1):.0%}"
        rows.append(words)
    return f"A timeline of {format_seconds(end_s)}. " + "; ".join(rows) + "."


def _draw(axes: Any, y: float, lane: Lane, size: float, end_s: float) -> None:
    color = COLORS[lane.kind]
    below = 0.42 if lane.named else 0.8  # the work leaves room for the names above it
    axes.broken_barh(
        _bars(lane.named, size), (y - 0.4, 0.8), facecolor=color, alpha=0.22, edgecolor="white"
    )
    shortest_s = min((span.seconds for span in lane.work), default=0.0)
    edge = "white" if len(lane.work) <= FEW and shortest_s > WIDE * end_s else color
    look = {"facecolor": color, "edgecolor": edge, "linewidth": 1.5 if edge == "white" else 0.5}
    axes.broken_barh(_bars(lane.work, size), (y - 0.4, below), **look)
    hatch = {"facecolor": "white", "edgecolor": MUTED, "hatch": "///", "linewidth": 0}
    axes.broken_barh(_bars(lane.waits, size), (y - 0.4, below), **hatch)
    height = y + 0.2 if lane.named else y - 0.4 + below / 2
    words = {"va": "center", "parse_math": False}
    fits = False
    for span in lane.named or (*lane.work, *lane.waits):
        if span.seconds > LETTER * end_s * (len(span.name) + 0.5):
            middle = (span.start_s + span.end_s) / 2 / size
            axes.text(middle, height, span.name, ha="center", **words)
            fits = True
    if lane.work and not lane.named and not fits:
        first = lane.work[0]  # all are too short for their names: its name stands before it
        if first.start_s > LETTER * end_s * (len(first.name) + 1):
            axes.text(first.start_s / size, height, f"{first.name} ", ha="right", **words)


def _bars(spans: Iterable[Span], size: float) -> list[tuple[float, float]]:
    return [(span.start_s / size, span.seconds / size) for span in spans]
