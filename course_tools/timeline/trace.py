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

# Of lanes, in the order of the picture.
LANE_KINDS = ("host", "launches", "copies", "exchange", "device")
ON_DEVICE = {"kernel": "device", "gpu_memcpy": "copies", "gpu_memset": "copies"}
ON_HOST = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver")
DRIVER = ("cuda_runtime", "cuda_driver")
EXCHANGE = re.compile(r"(void )?nccl", re.IGNORECASE)  # kernels of NCCL, and of AMD's RCCL
# A call for a copy comes back at once from pinned memory, and otherwise when the copy is done.
WAITING = re.compile(r"wait\b|(cuda|cu|hip)(\w*Synchronize|Memcpy)")
Event = Mapping[str, Any]
# What the profiler called its categories until 2021.
OLD_CATEGORIES = {
    "Operator": "cpu_op",
    "Runtime": "cuda_runtime",
    "Kernel": "kernel",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
}
# Blocks that the profiler names itself; until 2021 it called them operators.
NAMED = ("ProfilerStep#", "enumerate(DataLoader)#", "Optimizer.")

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
    every = _all_threads()
    # torch 2.11 warns without acc_events
    with profile(activities=activities, experimental_config=every, acc_events=True) as profiler:
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


def complete_events(trace: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a Chrome trace that have a start and an end, with the categories of
    today.
    """
    found = []
    for event in trace["traceEvents"]:
        if event.get("ph") != "X":
            continue
        category = event.get("cat")
        category = OLD_CATEGORIES.get(category, category)
        if category == "cpu_op" and event["name"].startswith(NAMED):
            category = "user_annotation"
        found.append({**event, "cat": category})
    return found


def steps_of(events: Iterable[Event]) -> list[Event]:
    """Return the steps that the program marked with `profiler.step()`, in order."""
    marked = []
    for event in events:
        on_host = event["cat"] == "user_annotation"
        if on_host and event["name"].startswith("ProfilerStep#"):
            marked.append(event)
    return sorted(marked, key=lambda event: event["ts"])


def threads_of(events: Iterable[Event]) -> dict[Any, str]:
    """Return names for the host's threads in a trace that did not bring them: the thread of the
    steps is the main one, and autograd's is "backward". Threads without an operation have none.
    """
    events = list(events)
    names: dict[Any, str] = {}
    for event in events:
        if event["cat"] == "cpu_op" and names.get(event["tid"]) != "backward":
            backward = event["name"].startswith("autograd::engine") or "Backward" in event["name"]
            names[event["tid"]] = "backward" if backward else f"thread {event['tid']}"
    for step in steps_of(events):
        names[step["tid"]] = "MainThread"
    return names


def lanes_of(events: Iterable[Event], threads: Mapping[Any, str]) -> tuple[Lane, ...]:
    """Return the lanes of a trace: the host's threads and their launches, then copies, exchanges
    between GPUs, and streams of the device.

    Args:
        events: of the Chrome trace; their times are microseconds.
        threads: the names of the host's threads, by their numbers.
    """
    events = [event for event in events if event["ph"] == "X"]
    gpus = {event["pid"] for event in events if event.get("cat") in ON_DEVICE}
    groups: dict[tuple[str, str, Any], list[Event]] = {}
    for event in events:
        place = _place(event, threads, several_gpus=len(gpus) > 1)
        if place:
            groups.setdefault(place, []).append(event)
    first = {place: min(event["ts"] for event in group) for place, group in groups.items()}
    start = min(first.values(), default=0)

    def order(place: tuple[str, str, Any]) -> tuple:
        kind, name, _ = place
        return LANE_KINDS.index(kind), name != "host", first[place]

    return tuple(_lane(place, groups[place], start) for place in sorted(groups, key=order))


def _place(
    event: Event, threads: Mapping[Any, str], several_gpus: bool
) -> tuple[str, str, Any] | None:
    """Return the kind and name of the lane that an event belongs to, and what tells it from another
    of that name; None for what the profiler notes about itself.
    """
    category, tid = event.get("cat"), event.get("tid")
    if category in ON_DEVICE:
        kind = ON_DEVICE[category]
        if category == "kernel" and EXCHANGE.match(event["name"]):
            kind = "exchange"
        stream = f"stream {str(tid).removeprefix('stream ')}"
        name = {"copies": "copies", "exchange": "NCCL"}.get(kind, stream)
        # the profiler gives each GPU a process whose number is the GPU's
        return kind, f"GPU {event['pid']} {name}" if several_gpus else name, None
    if category not in ON_HOST or event["name"].startswith("ProfilerStep"):
        return None
    if category in DRIVER and "Launch" in event["name"]:
        return "launches", "launches", None
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
