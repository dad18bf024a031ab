"""Chrome traces of torch.profiler: take one, and read the lanes of a timeline out of it."""

import json
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch.profiler import ProfilerActivity, _ExperimentalConfig, profile, record_function

from course_tools.timeline.lanes import Lane, Span, outermost, without
from course_utils.devices import Device, wait_for

LANE_KINDS = ("host", "copies", "device")  # of lanes, in the order of the picture
ON_DEVICE = {"kernel": "device", "gpu_memcpy": "copies", "gpu_memset": "copies"}
ON_HOST = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver")
WAITING = re.compile(r"wait\b|(cuda|cu|hip)\w*Synchronize")
Event = Mapping[str, Any]

# Where the profiler writes. On Windows it reads a path in the system's code page, and does not find
# the temporary folder of a user whose name has an umlaut: there the file lies in the working
# folder, and its path begins in it.
NEAR = "." if os.name == "nt" else None


def run_profiled(fn: Callable[[], object], device: Device) -> dict[str, Any]:
    """Run `fn()` under torch.profiler, wait for the device, and return the Chrome trace, with the
    names of Python's threads by their numbers as "threads".
    """
    if device.kind == "cpu":
        # a CUDA build reports on stderr that there is no GPU
        os.environ.setdefault("KINETO_LOG_LEVEL", "6")
    activities = [ProfilerActivity.CPU]
    if device.kind in ("cuda", "xpu"):
        activities.append(getattr(ProfilerActivity, device.kind.upper()))
    with profile(activities=activities, experimental_config=_all_threads()) as profiler:
        fn()
        if device.kind != "cpu":
            with record_function("wait for the device"):
                wait_for(device)
        threads = {thread.native_id: thread.name for thread in threading.enumerate()}
    return {**read_trace(profiler), "threads": threads}


def _all_threads() -> _ExperimentalConfig | None:
    """Return the setting that shows the profiler all Python threads, which torch 2.7 introduced."""
    try:
        return _ExperimentalConfig(profile_all_threads=True)  # type: ignore[call-arg]
    except TypeError:
        warnings.warn(
            "torch 2.6 profiles only the thread that starts it; from 2.7 on all are seen.",
            stacklevel=4,
        )
        return None


def read_trace(profiler: Any) -> dict[str, Any]:
    """Return the Chrome trace of a profiler of torch that has stopped."""
    with TemporaryDirectory(dir=NEAR) as folder:
        path = Path(os.path.relpath(folder) if NEAR else folder, "trace.json")
        profiler.export_chrome_trace(str(path))
        return json.loads(path.read_bytes())


def lanes_of(events: Iterable[Event], threads: Mapping[int | None, str]) -> tuple[Lane, ...]:
    """Return the lanes of a trace: the host's threads, then copies and streams of the device.

    Args:
        events: of the Chrome trace; their times are microseconds.
        threads: the names of the host's threads, by their numbers.
    """
    groups: dict[tuple[str, str, Any], list[Event]] = {}
    for event in events:
        place = _place(event, threads) if event["ph"] == "X" else None
        if place:
            groups.setdefault(place, []).append(event)
    first = {place: min(event["ts"] for event in group) for place, group in groups.items()}
    start = min(first.values(), default=0)

    def order(place: tuple[str, str, Any]) -> tuple:
        kind, name, _ = place
        return LANE_KINDS.index(kind), name != "host", first[place]

    return tuple(_lane(place, groups[place], start) for place in sorted(groups, key=order))


def _place(event: Event, threads: Mapping[int | None, str]) -> tuple[str, str, Any] | None:
    """Return the kind and name of the lane that an event belongs to, and what tells it from another
    of that name; None for what the profiler notes about itself.
    """
    category, tid = event.get("cat"), event.get("tid")
    if category in ON_DEVICE:
        kind = ON_DEVICE[category]
        name = kind if kind == "copies" else f"stream {tid}"
        gpu = event["pid"]  # the profiler gives each GPU a process whose number is the GPU's
        return kind, f"GPU {gpu} {name}" if gpu else name, None
    if category not in ON_HOST or event["name"].startswith("ProfilerStep"):
        return None
    thread = threads.get(tid, f"thread {tid}").removesuffix("_0")  # of a pool of one
    for kind in ("device", "copies"):
        if thread.startswith(kind):
            return kind, thread, tid
    return "host", "host" if thread == "MainThread" else thread, tid


def _lane(place: tuple[str, str, Any], events: Iterable[Event], start: float) -> Lane:
    """Return a lane from its events. Where nothing but names is noted, these are the work."""
    kind, name, _ = place
    operations: list[Span] = []
    blocks: list[Span] = []
    for event in events:
        start_s = (event["ts"] - start) / 1e6
        span = Span(event["name"], start_s, start_s + event["dur"] / 1e6)
        (blocks if event["cat"] == "user_annotation" else operations).append(span)
    waits = outermost(span for span in operations + blocks if WAITING.match(span.name))
    work, named = outermost(operations), outermost(blocks)
    return Lane(
        name=name,
        kind=kind,
        work=without(work or named, waits),
        named=named if kind == "host" or work else (),
        waits=waits,
    )
