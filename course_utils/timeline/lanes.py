"""Lanes of a timeline: what each thread, stream or process did and when, and their picture."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_utils.figures import LOOKS, MUTED, Picture, lecture_axes, picture
from course_utils.text import DURATIONS, format_seconds

# Okabe-Ito again; green is left to XLA, so the exchange is yellow.
COLORS = {"host": "#0072B2", "device": "#D55E00", "copies": "#CC79A7", "exchange": "#E69F00"}
FEW = 40  # spans of a lane that are drawn with an edge each
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
    """What one thread, stream or process did.

    Attributes:
        name: of the thread or stream.
        kind: "host", "device", "copies" or "exchange".
        work: operations, kernels, copies or exchanges; where they are nested, the outermost ones.
        named: the outermost blocks that the program has given a name with `record_function`.
        waits: when it did nothing but wait for a device or for another process.
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

    @property
    def end_s(self) -> float:
        """When the last work, block or waiting ended."""
        return max((span.end_s for span in self.work + self.named + self.waits), default=0.0)

    def gaps(self, end_s: float) -> list[Span]:
        """Return the times between 0 and `end_s` in which no work went on, in order."""
        return without([Span("gap", 0.0, end_s)], union(self.work))


def union(spans: Iterable[Span]) -> list[Span]:
    """Return the times in which at least one span goes on, in order and without overlaps."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start_s):
        if found and span.start_s <= found[-1].end_s:
            last = found.pop()
            span = Span(last.name, last.start_s, max(last.end_s, span.end_s))
        found.append(span)
    return found


def outermost(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return the spans that lie in no other one, in order."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start_s, -span.end_s)):
        if not found or span.end_s > found[-1].end_s:
            found.append(span)
    return tuple(found)


def without(spans: Iterable[Span], holes: Iterable[Span]) -> list[Span]:
    """Return what is left of the spans where no hole is, in order."""
    left = list(spans)
    for hole in holes:
        before = [Span(span.name, span.start_s, min(span.end_s, hole.start_s)) for span in left]
        after = [Span(span.name, max(span.start_s, hole.end_s), span.end_s) for span in left]
        left = [span for span in before + after if span.seconds > 0]
    return sorted(left, key=lambda span: span.start_s)


def draw_timeline(lanes: Sequence[Lane], end_s: float, title: str) -> Picture:
    """Draw the lanes below one another: names above, work solid, waiting hatched, nothing where
    nothing happened.
    """
    return _draw_runs({"": lanes}, end_s, title, describe(lanes, end_s))


def draw_runs(runs: Mapping[str, Sequence[Lane]], title: str) -> Picture:
    """Draw several runs, by their names, below one another on one time axis that begins with each.

    Raises:
        ValueError: the title is longer than 45 characters.
    """
    ends = {name: max(lane.end_s for lane in lanes) for name, lanes in runs.items()}
    said = [f"{name}: {describe(lanes, ends[name])}" for name, lanes in runs.items()]
    return _draw_runs(runs, max(ends.values()), title, " ".join(said))


def _draw_runs(runs: Mapping[str, Sequence[Lane]], end_s: float, title: str, alt: str) -> Picture:
    units = [(unit, size) for unit, size in DURATIONS if end_s >= 2 * size]
    unit, size = units[0] if units else DURATIONS[-1]
    axes = lecture_axes(title, unit)
    rows, labels, y = [], [], 0.0
    for name, lanes in runs.items():
        run_s = max((lane.end_s for lane in lanes), default=0.0) if name else end_s
        if name:
            words = f"{name}: {format_seconds(run_s)}"
            axes.text(0, y, words, va="center", fontweight="bold", parse_math=False)
            y -= 0.75
        for lane in lanes:
            _draw(axes, y, lane, size, end_s)
            rows.append(y)
            labels.append(f"{lane.name}\n{lane.busy_s / (run_s or 1):.0%} busy")
            y -= 1.0
        y -= 0.2 if name else 0.0
    figure: Any = axes.figure
    figure.set_figheight(max(7.2, 0.75 * -y))  # two lines of text for each lane
    axes.set_yticks(rows, labels, parse_math=False)
    # a single lane stands in the middle, no higher than one of two
    spare = max(0, 2 - len(rows)) / 2
    axes.set(xlim=(0, end_s / size or 1), ylim=(y + 0.5 - spare, 0.5 + spare))
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    return picture(axes, alt, colors=32)


def describe(lanes: Sequence[Lane], end_s: float) -> str:
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
    color = LOOKS["xla"]["color"] if "XLA" in lane.name else COLORS[lane.kind]
    below = 0.42 if lane.named else 0.8  # the work leaves room for the names above it
    axes.broken_barh(
        _bars(lane.named, size), (y - 0.4, 0.8), facecolor=color, alpha=0.22, edgecolor="white"
    )
    edge = "white" if len(lane.work) <= FEW else color  # or the edges would hide short bars
    look = {"facecolor": color, "edgecolor": edge, "linewidth": 1.5 if edge == "white" else 0.5}
    axes.broken_barh(_bars(lane.work, size), (y - 0.4, below), **look)
    hatch = {"facecolor": "white", "edgecolor": MUTED, "hatch": "///", "linewidth": 0}
    axes.broken_barh(_bars(lane.waits, size), (y - 0.4, below), **hatch)
    for span in lane.named or (*lane.work, *lane.waits):
        if span.seconds > LETTER * end_s * (len(span.name) + 0.5):
            middle = (span.start_s + span.end_s) / 2 / size
            height = y + 0.2 if lane.named else y - 0.4 + below / 2
            words = {"ha": "center", "va": "center", "parse_math": False}
            axes.text(middle, height, span.name, **words)


def _bars(spans: Iterable[Span], size: float) -> list[tuple[float, float]]:
    return [(span.start_s / size, span.seconds / size) for span in spans]
