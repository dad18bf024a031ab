"""A timeline: what host, device and copies did, and when, from a real trace of torch.profiler."""

import gzip
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_utils.devices import Device, as_device, wait_for
from course_utils.figures import Picture
from course_utils.stopwatch import check_ran
from course_utils.timeline.lanes import Lane, describe, draw_timeline
from course_utils.timeline.trace import (
    OURS,
    PROCESSES,
    lanes_of,
    name_event,
    noted,
    run_profiled,
)

if TYPE_CHECKING:
    import pandas as pd


COLUMNS = ["lane", "kind", "operations", "busy_share", "wait_share", "gaps", "longest_gap_ms"]


@dataclass(frozen=True)
class Timeline:
    """What went on, and when."""

    #: the Chrome trace that all is read from; its times are microseconds
    trace: dict[str, Any] = field(repr=False)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Timeline":
        """Read a Chrome trace that `save` or torch.profiler has written, packed with gzip or
        not.
        """
        data = Path(path).read_bytes()
        trace = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        if not lanes_of(
            trace["traceEvents"] if isinstance(trace, dict) and trace.get("traceEvents") else ()
        ):
            raise ValueError(
                f"{path} has no events of torch.profiler, and a timeline is read from its traces."
            )
        return cls(trace)

    @classmethod
    def of_spans(cls, lanes: Mapping[str, Iterable[tuple[str, float, float]]]) -> "Timeline":
        """Make a timeline of what a program has noted itself: for each lane its name, and (name,
        start_s, end_s).
        """
        events: list[dict[str, Any]] = []
        for tid, (lane, spans) in enumerate(lanes.items(), 1):
            events += noted(tid, lane, spans)
        return cls({"traceEvents": events})

    @classmethod
    def merge(cls, timelines: Mapping[str, "Timeline"]) -> "Timeline":
        """Lay the timelines of several processes over one another, on the clock that one machine's
        processes share.

        Args:
            timelines: by the name that goes before the names of their lanes, such as "rank 0".
        """
        events: list[dict[str, Any]] = []
        for index, (name, each) in enumerate(timelines.items()):
            first, base_us = len(events), each.trace.get("baseTimeNanoseconds", 0) / 1e3
            for event in each.trace["traceEvents"]:
                if event["ph"] in "XM" and isinstance(event["pid"], int):
                    # two machines may use one number twice
                    pid = event["pid"] % PROCESSES + index * PROCESSES
                    events.append({**event, "pid": pid, "ts": event.get("ts", 0) + base_us})
            events += [
                name_event("process_name", pid, OURS, name)
                for pid in sorted({event["pid"] for event in events[first:]})
            ]
        return cls({"traceEvents": events})

    @cached_property
    def lanes(self) -> tuple[Lane, ...]:
        """The threads of the host, then copies, streams of the device, and exchanges between
        processes.
        """
        return lanes_of(self.trace["traceEvents"])

    @property
    def end_s(self) -> float:
        """Seconds from the first event to the end of the last."""
        return max((lane.end_s for lane in self.lanes), default=0.0)

    def plot(self, title: str = "What happened when") -> Picture:
        """Return a picture of the lanes. The title has 45 characters at most."""
        return draw_timeline(self.lanes, self.end_s, title)

    def to_frame(self) -> "pd.DataFrame":
        """Return for each lane how many operations it had, its busy and waiting shares, and its
        gaps, as a table.
        """
        import pandas as pd

        whole_s = self.end_s or 1.0
        rows = []
        for lane in self.lanes:
            gaps = [gap.seconds for gap in lane.gaps(self.end_s)]
            row = {
                "lane": lane.name,
                "kind": lane.kind,
                "operations": len(lane.work),
                "busy_share": lane.busy_s / whole_s,
                "wait_share": sum(span.seconds for span in lane.waits) / whole_s,
                "gaps": len(gaps),
                "longest_gap_ms": 1e3 * max(gaps, default=0.0),
            }
            rows.append(row)
        return pd.DataFrame(rows, columns=COLUMNS).set_index("lane")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a Chrome trace, which https://ui.perfetto.dev opens, and return where it is; .gz
        packs it.
        """
        data = json.dumps(self.trace).encode()
        Path(path).write_bytes(gzip.compress(data) if str(path).endswith(".gz") else data)
        return Path(path)

    def __repr__(self) -> str:
        return describe(self.lanes, self.end_s)

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
    return Timeline(run_profiled(fn, device))
