"""Measure the memory that PyTorch's CPU allocator hands out while something runs, with PyTorch's
own profiler.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

from torch.profiler import ProfilerActivity, profile

from course_utils.text import format_bytes
from course_utils.timeline.trace import read_trace


@dataclass(frozen=True)
class Record:
    """What was measured: bytes in use over time, counted from nothing at the start.

    Attributes:
        times_s: when something was allocated or freed, from the first time on.
        used_bytes: what was in use then.
    """

    times_s: tuple[float, ...]
    used_bytes: tuple[int, ...]

    @property
    def peak_bytes(self) -> int:
        """The most that was in use at a time."""
        return max(self.used_bytes, default=0)

    def __repr__(self) -> str:
        return f"measured: {format_bytes(self.peak_bytes)} at the peak"


def record_memory(work: Callable[[], object]) -> Record:
    """Run `work` once and return what it held of the CPU's memory, from PyTorch's record of every
    allocation.

    Memory from before is not counted, so what shall count has to be made inside of `work`.
    """
    # a CUDA build reports on stderr that there is no GPU
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        work()
    events = read_trace(profiler)["traceEvents"]
    found = [
        event
        for event in events
        if event["name"] == "[memory]" and event["args"]["Device Type"] == 0
    ]
    found.sort(key=lambda event: event["ts"])
    used = accumulate(event["args"]["Bytes"] for event in found)
    times = tuple((event["ts"] - found[0]["ts"]) / 1e6 for event in found)
    return Record(times, tuple(used))
