"""Chrome traces of torch.profiler: take one, and read the lanes of a timeline out of it."""

import json
import os
import re
import threading
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch.profiler import ProfilerActivity, _ExperimentalConfig, profile, record_function

from course_utils.devices import Device, wait_for
from course_utils.timeline.lanes import Lane, Span, outermost, union, without

ORDER = ("host", "copies", "device", "exchange")
ON_DEVICE = {"kernel": "device", "gpu_memcpy": "copies", "gpu_memset": "copies"}
ON_HOST = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver")
WAITING = re.compile(r"wait\b|(cuda|cu|hip)\w*Synchronize")
# the thread that a process's name is noted on; the profiler notes the program's name on thread 0
OURS = -1
# Linux numbers its processes below this, and gives the main thread the number of its process
PROCESSES = 2**22
Event = Mapping[str, Any]
# process, kind and name of a lane, and its thread: two may have one name
Place = tuple[int, str, str, Any]


# Where the profiler writes. On Windows it reads a path in the system's code page, and does not find
# the temporary folder of a user whose name has an umlaut: there the file lies in the working
# folder, and its path begins in it.
NEAR = "." if os.name == "nt" else None


def run_profiled(fn: Callable[[], object], device: Device) -> dict[str, Any]:
    """Run `fn()` under torch.profiler, wait for the device, and return the Chrome trace."""
    if device.kind == "cpu":
        # a CUDA build reports on stderr that there is no GPU
        os.environ.setdefault("KINETO_LOG_LEVEL", "6")
    activities = [ProfilerActivity.CPU]
    if device.kind in ("cuda", "xpu"):
        activities.append(getattr(ProfilerActivity, device.kind.upper()))
    with profile(activities=activities, experimental_config=_all_threads()) as seen:
        fn()
        if device.kind != "cpu":
            with record_function("wait for the device"):
                wait_for(device)
        threads = {thread.native_id: thread.name for thread in threading.enumerate()}
    trace = read_trace(seen)
    for tid, name in threads.items():
        if tid:
            trace["traceEvents"].append(name_event("thread_name", os.getpid(), tid, name))
    return trace


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


def name_event(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    """Return the event that gives a process ("process_name", with `OURS`) or a thread
    ("thread_name") its name.
    """
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def noted(tid: int, lane: str, spans: Iterable[tuple[str, float, float]]) -> list[dict[str, Any]]:
    """Return the events of a lane whose times a program has noted itself: (name, start_s,
    end_s).
    """
    common = {"ph": "X", "cat": "user_annotation", "pid": 0, "tid": tid}
    events = [
        {**common, "name": what, "ts": start * 1e6, "dur": (end - start) * 1e6}
        for what, start, end in spans
    ]
    return [name_event("thread_name", 0, tid, lane), *events]


def lanes_of(events: Iterable[Event]) -> tuple[Lane, ...]:
    """Return the lanes of a trace: process by process the host's threads, copies, streams and
    exchanges.

    Exchanges are the work of gloo's threads and NCCL's kernels. While the host does nothing until
    one of them ends, it waits for it.
    """
    events = list(events)
    notes = [
        event
        for event in events
        if event["ph"] == "M" and event["name"] in ("thread_name", "process_name")
    ]
    names = {(note["name"], note["pid"], note.get("tid")): note["args"]["name"] for note in notes}
    groups: dict[Place, list[Event]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X" and (place := _place(event, names)):
            groups[place].append(event)
    groups = _name_hosts(groups)
    start = min((event["ts"] for group in groups.values() for event in group), default=0)
    processes = list(dict.fromkeys(place[0] for place in groups))
    found = {place: _lane(place, groups[place], start) for place in groups}
    first = {place: min(event["ts"] for event in groups[place]) for place in groups}
    order = sorted(
        found, key=lambda p: (processes.index(p[0]), ORDER.index(p[1]), p[2] != "host", first[p])
    )
    lanes = {
        place: _waiting_for(found[place], found.get((place[0], "exchange", "exchange", None)))
        for place in order
    }
    process = {pid: names.get(("process_name", pid, OURS), "") for pid in processes}
    return tuple(
        replace(lane, name=f"{process[place[0]]} {lane.name}".strip())
        for place, lane in lanes.items()
    )


def _name_hosts(groups: Mapping[Place, list[Event]]) -> dict[Place, list[Event]]:
    """Name a process's only thread, of which the profiler knows no more than a number, as macOS
    numbers them.
    """
    threads = Counter(place[0] for place in groups if place[1] == "host")
    return {
        (
            pid,
            kind,
            "host" if kind == "host" and threads[pid] == 1 and name.startswith("thread ") else name,
            tid,
        ): group
        for (pid, kind, name, tid), group in groups.items()
    }


def _place(event: Event, names: Mapping[tuple[str, int, Any], str]) -> Place | None:
    """Return the lane that an event belongs to, or None for what the profiler notes about
    itself.
    """
    category, what, pid, tid = event.get("cat"), event["name"], event["pid"], event.get("tid")
    if what.startswith("gloo:") or (category == "kernel" and what.startswith("nccl")):
        return pid, "exchange", "exchange", None
    if category in ON_DEVICE:
        kind = ON_DEVICE[category]
        number = pid % PROCESSES  # the profiler gives each GPU a process whose number is the GPU's
        return (
            pid,
            kind,
            f"GPU {number} " * (number > 0) + (kind if kind == "copies" else f"stream {tid}"),
            None,
        )
    if category not in ON_HOST or what.startswith(("DistributedDataParallel.", "ProfilerStep")):
        return None
    # of a pool of one
    thread = names.get(("thread_name", pid, tid), f"thread {tid}").removesuffix("_0")
    kind = next((kind for kind in ("device", "copies") if thread.startswith(kind)), "host")
    return (
        pid,
        kind,
        "host" if thread == "MainThread" or (tid == pid % PROCESSES and kind == "host") else thread,
        tid,
    )


def _lane(place: Place, events: Iterable[Event], start: float) -> Lane:
    """Return a lane from its events. Where nothing but names is noted, these are the work."""
    spans = []
    for e in events:
        name = e["name"].lstrip("# ").partition("#")[0]
        spans.append(
            (e["cat"], Span(name, (e["ts"] - start) / 1e6, (e["ts"] + e["dur"] - start) / 1e6))
        )
    waits = outermost(span for _, span in spans if WAITING.match(span.name))
    named = outermost(span for category, span in spans if category == "user_annotation")
    work = outermost(span for category, span in spans if category != "user_annotation")
    return Lane(
        place[2],
        place[1],
        tuple(without(work or named, waits)),
        named if place[1] == "host" or work else (),
        waits,
    )


def _waiting_for(lane: Lane, exchange: Lane | None) -> Lane:
    """Note as waiting of the host what it spends idle until an exchange ends."""
    if exchange is None or lane.kind != "host":
        return lane
    end_s = max((span.end_s for span in lane.work + lane.named), default=0.0)
    waits = [
        Span("wait for the exchange", max(gap.start_s, span.start_s), span.end_s)
        for gap in lane.gaps(end_s)
        for span in exchange.work
        if gap.start_s < span.end_s <= gap.end_s
    ]
    return replace(lane, waits=tuple(union([*lane.waits, *waits])))
