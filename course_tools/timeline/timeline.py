"""A timeline: what host, device and copies did, and when, from a real trace of torch.profiler."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from course_tools.figures import Picture
from course_tools.timeline.drawing import draw_runs, in_words
from course_tools.timeline.lanes import Lane, Span, outermost, without
from course_tools.timeline.trace import (
    DRIVER,
    ON_HOST,
    WAITING,
    Event,
    Trace,
    complete_events,
    steps_of,
    threads_of,
    work_of,
)

# Of lanes, in the order of the picture.
LANE_KINDS = ("host", "launches", "copies", "exchange", "device")
# The lane of each kind of work on a device.
LANE_OF_WORK = {
    "arithmetic": "device",
    "memory": "device",
    "exchange": "exchange",
    "copies": "copies",
}

LaneKey = tuple[str, str, Any]  # kind and name of a lane, and what tells it from others so named


@dataclass(frozen=True)
class Timeline:
    """The recorded work of host and device over time."""

    lanes: tuple[Lane, ...]  #: the threads of the host, then copies and streams of the device

    @classmethod
    def of_spans(cls, lanes: Mapping[str, Iterable[tuple[str, float, float]]]) -> "Timeline":
        """Make a timeline of what a program has noted itself: for each lane its name, and (name,
        start_s, end_s). A lane whose name begins with "device" is drawn as one.
        """
        noted = {name: list(spans) for name, spans in lanes.items()}
        starts = [start_s for spans in noted.values() for _, start_s, _ in spans]
        first_s = min(starts, default=0.0)
        made = []
        for name, spans in noted.items():
            work = tuple(Span(what, start - first_s, end - first_s) for what, start, end in spans)
            if name.startswith("device"):
                made.append(Lane(name, "device", work))
            else:
                made.append(Lane(name, "noted", work, named=work))
        return cls(tuple(made))

    @classmethod
    def of_trace(cls, trace: Trace) -> "Timeline":
        """Make a timeline of a Chrome trace of torch.profiler, on whatever machine it was made.
        Only the steps are shown if the program marked them with `profiler.step()`.

        Args:
            trace: the path of what `export_chrome_trace` wrote, or what `json.load` made of it.

        Raises:
            OSError, ValueError: there is no such file, or it is not a Chrome trace.
        """
        events = complete_events(trace)
        threads = threads_of(events)
        shown = []
        for event in events:
            if work_of(event) or event["tid"] in threads:
                shown.append(event)
        made = cls(lanes_of(shown, threads))
        steps = steps_of(events)
        if not steps:
            return made
        with_lane = [event for event in shown if _lane_key(event, threads, several_gpus=False)]
        first = min((event["ts"] for event in with_lane), default=steps[0]["ts"])
        start_s = (steps[0]["ts"] - first) / 1e6
        return made.between(start_s, (steps[-1]["ts"] + steps[-1]["dur"] - first) / 1e6)

    def between(self, start_s: float, end_s: float) -> "Timeline":
        """Return what lies between two moments, in seconds from this timeline's beginning."""
        lanes = [lane.between(start_s, end_s) for lane in self.lanes]
        return Timeline(tuple(lane for lane in lanes if lane.work or lane.named or lane.waits))

    @property
    def end_s(self) -> float:
        """Seconds from the first event to the end of the last."""
        return max((lane.end_s for lane in self.lanes), default=0.0)

    def plot(self) -> Picture:
        """Return a picture of the lanes."""
        return draw_runs({"one run": self.lanes}, "What happened when")

    def __repr__(self) -> str:
        return in_words(self.lanes, self.end_s)

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict, dict]:
        return self.plot()._repr_mimebundle_()


def lanes_of(events: Iterable[Event], threads: Mapping[Any, str]) -> tuple[Lane, ...]:
    """Return the lanes of a trace: the host's threads and their launches, then copies, exchanges
    between GPUs, and streams of the device.

    Args:
        events: of the Chrome trace; their times are microseconds.
        threads: the names of the host's threads, by their numbers.
    """
    events = list(events)
    gpus = {event["pid"] for event in events if work_of(event)}
    groups: dict[LaneKey, list[Event]] = {}
    for event in events:
        key = _lane_key(event, threads, several_gpus=len(gpus) > 1)
        if key:
            groups.setdefault(key, []).append(event)
    first = {key: min(event["ts"] for event in group) for key, group in groups.items()}
    start = min(first.values(), default=0)

    def order(key: LaneKey) -> tuple:
        kind, name, _ = key
        return LANE_KINDS.index(kind), name != "host", first[key]

    return tuple(_lane(key, groups[key], start) for key in sorted(groups, key=order))


def _lane_key(event: Event, threads: Mapping[Any, str], several_gpus: bool) -> LaneKey | None:
    """Return the kind and name of the lane that an event belongs to, and what tells it from another
    of that name; None for what the profiler notes about itself.
    """
    category, tid, work = event.get("cat"), event.get("tid"), work_of(event)
    if work:
        kind = LANE_OF_WORK[work]
        stream = f"stream {tid}"
        name = {"copies": "copies", "exchange": "NCCL"}.get(kind, stream)
        # the profiler gives each GPU a process whose number is the GPU's
        return kind, f"GPU {event['pid']} {name}" if several_gpus else name, None
    if category not in ON_HOST or event["name"].startswith("ProfilerStep"):
        return None
    if category in DRIVER and "Launch" in event["name"]:
        return "launches", "launches", None
    thread = threads.get(tid, f"thread {tid}")
    return "host", "host" if thread == "MainThread" else thread, tid


def _lane(key: LaneKey, events: Iterable[Event], start: float) -> Lane:
    """Return a lane from its events. Where nothing but names is noted, these are the work."""
    kind, name, _ = key
    operations: list[Span] = []
    blocks: list[Span] = []
    for event in events:
        start_s, end_s = (event["ts"] - start) / 1e6, (event["ts"] + event["dur"] - start) / 1e6
        if event["cat"] == "user_annotation":
            blocks.append(Span(_short(event["name"]), start_s, end_s))
        else:
            operations.append(Span(event["name"], start_s, end_s))
    waits = outermost(span for span in operations + blocks if WAITING.match(span.name))
    work, named = outermost(operations), outermost(blocks)
    return Lane(
        name=name,
        kind=kind,
        work=without(work or named, waits),
        named=named if kind == "host" or work else (),
        waits=waits,
    )


def _short(name: str) -> str:
    """Return the name of a block as it fits into a picture."""
    if name.startswith("enumerate(DataLoader)#"):
        return "loader"
    if name.startswith("Optimizer."):
        method = name.rpartition(".")[2]  # of "Optimizer.step#SGD.step"
        return "optimizer" if method == "step" else method
    return name.strip("# ")
