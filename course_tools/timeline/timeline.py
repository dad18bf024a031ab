"""A timeline: what host, device and copies did, and when, from a real trace of torch.profiler."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from course_tools.figures import Picture
from course_tools.timeline.drawing import draw_runs, in_words
from course_tools.timeline.lanes import Lane, Span
from course_tools.timeline.trace import (
    ON_DEVICE,
    complete_events,
    lanes_of,
    run_profiled,
    steps_of,
    threads_of,
)
from course_utils.devices import Device, as_device, wait_for
from course_utils.timing import check_ran


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
        first_s = min(start_s for spans in noted.values() for _, start_s, _ in spans)
        made = []
        for name, spans in noted.items():
            work = tuple(Span(what, start - first_s, end - first_s) for what, start, end in spans)
            if name.startswith("device"):
                made.append(Lane(name, "device", work))
            else:
                made.append(Lane(name, "host", work, named=work))
        return cls(tuple(made))

    @classmethod
    def of_trace(cls, trace: Mapping[str, Any]) -> "Timeline":
        """Make a timeline of a Chrome trace of torch.profiler, on whatever machine it was made:
        `json.load(open("trace.json"))`. Only the steps are shown if the program marked them with
        `profiler.step()`.
        """
        events = complete_events(trace)
        threads = threads_of(events)
        shown = []
        for event in events:
            if event["cat"] in ON_DEVICE or event["tid"] in threads:
                shown.append(event)
        made = cls(lanes_of(shown, threads))
        steps = steps_of(events)
        if not steps:
            return made
        first = min(event["ts"] for event in shown if event not in steps)
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

    def plot(self, title: str = "What happened when") -> Picture:
        """Return a picture of the lanes. The title has 45 characters at most."""
        return draw_runs({"one run": self.lanes}, title)

    def __repr__(self) -> str:
        return in_words(self.lanes, self.end_s)

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict, dict]:
        return self.plot()._repr_mimebundle_()


def timeline(fn: Callable[[], object], *, device: Device | str | None = None) -> Timeline:
    """Run `fn()` once unseen and once under torch.profiler; return what host and device did the
    second time, and when.

    Blocks that `fn` puts under `torch.profiler.record_function(name)` show their names; a name that
    begins with "wait" shows as waiting. A Python thread whose name begins with "device" or "copies"
    is drawn as such, if it has not ended before `fn` has. Streams of the device show on CUDA, ROCm
    and XPU; of others the profiler knows the host alone.

    Args:
        fn: the work, without arguments.
        device: where `fn` works, and so what to wait for at its end; a `Device`, its name, or None
            for the best one.
    """
    device = as_device(device)
    check_ran(fn())
    wait_for(device)
    trace = run_profiled(fn, device)
    return Timeline(lanes_of(trace["traceEvents"], trace["threads"]))
