"""Chrome traces of torch.profiler: take one, read one, and say what kind of work an event is."""

import gzip
import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch.profiler import ProfilerActivity, _ExperimentalConfig, profile, record_function

from course_utils.devices import Device, wait_for
from course_utils.kinds import kind_called

Event = Mapping[str, Any]
Trace = Mapping[str, Any] | list[Any] | str | os.PathLike  # as a trace is given: also by its path
ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
DRIVER = ("cuda_runtime", "cuda_driver")
ON_HOST = ("cpu_op", "user_annotation", *DRIVER)
EXCHANGE = re.compile(r"(void )?nccl", re.IGNORECASE)  # kernels of NCCL, and of AMD's RCCL
# Kernels that multiply matrices, convolve or attend, by the names that cuBLAS, cuDNN, CUTLASS,
# rocBLAS ("Cijk"), MIOpen and Triton's templates give them. Others mostly wait for memory.
ARITHMETIC = re.compile(
    r"gemm|conv(?!er)|cutlass|cudnn_|xmma|winograd|[dw]grad|fprop|nvjet|Cijk|igemm|fft|"
    r"attention|attn|flash|fmha|RNN|LSTM|GRU|triton_tem",
    re.IGNORECASE,
)
BATCH_NORM = re.compile(r"\bbn_|batch_?norm", re.IGNORECASE)
WORK_KINDS = ("arithmetic", "memory", "exchange", "copies")
# A call for a copy comes back at once from pinned memory, and otherwise when the copy is done.
WAITING = re.compile(r"wait\b|(cuda|cu|hip)(\w*Synchronize|Memcpy)")
NUMBER = (int, float)
LATEST = 1e18  # microseconds since 1970: the year 33,000
PLAIN = (str, int, float, type(None))
NOTHING: dict[str, Any] = {}

# Where the profiler writes. On Windows it reads a path in the system's code page, and does not find
# the temporary folder of a user whose name has an umlaut: there the file lies in the working
# folder, and its path begins in it.
NEAR = "." if os.name == "nt" else None


def work_of(event: Event) -> str | None:
    """Return what kind of work of a device an event is, one of `WORK_KINDS`; None for what is not
    on a device. A copy inside the device and a memset are work of its memory.
    """
    category = event.get("cat")
    return _kind_of(category, event["name"]) if category in ON_DEVICE else None


@lru_cache(maxsize=10_000)
def _kind_of(category: str, name: str) -> str:
    if category == "gpu_memset" or (category == "gpu_memcpy" and "DtoD" in name):
        return "memory"
    if category == "gpu_memcpy":
        return "copies"
    if EXCHANGE.match(name):
        return "exchange"
    multiplies = ARITHMETIC.search(name) and not BATCH_NORM.search(name)
    return "arithmetic" if multiplies else "memory"


def silence_profiler() -> None:
    """Let the profiler of a CUDA build not report on stderr that there is no GPU."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")


def run_profiled(fn: Callable[[], object], device: Device) -> dict[str, Any]:
    """Run `fn()` under torch.profiler, wait for the device, and return the Chrome trace."""
    if device.kind == "cpu":
        silence_profiler()
    activities = [ProfilerActivity.CPU]
    if activity := kind_called(device.kind).activity:
        activities.append(getattr(ProfilerActivity, activity))
    every = _all_threads()
    # torch 2.11 warns without acc_events
    with profile(activities=activities, experimental_config=every, acc_events=True) as profiler:
        fn()
        if device.kind != "cpu":
            with record_function("wait for the device"):
                wait_for(device)
    return read_trace(profiler)


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


def open_trace(trace: Trace) -> Mapping[str, Any]:
    """Return a Chrome trace, read from its file where its path was given (.json or .json.gz).

    Raises:
        OSError: there is no such file, or it cannot be read.
        ValueError: it is not a Chrome trace.
    """
    where = "this"
    if isinstance(trace, str | os.PathLike):
        path = Path(trace)
        where = path.name
        content = path.read_bytes()
        try:
            trace = json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
        except (ValueError, OSError, EOFError, RecursionError) as error:
            raise ValueError(f"{where} is not a Chrome trace: {error}") from error
    if isinstance(trace, list):  # the other form of a Chrome trace
        trace = {"traceEvents": trace}
    if not isinstance(trace, Mapping) or not isinstance(trace.get("traceEvents"), list):
        raise ValueError(
            f"{where} is not a Chrome trace: it has no list of traceEvents. Pass what "
            "torch.profiler's export_chrome_trace wrote, or the path of that file."
        )
    return trace


def complete_events(trace: Trace) -> list[dict[str, Any]]:
    """Return the events of a Chrome trace that have a start and an end.

    Raises:
        ValueError: it is not a Chrome trace, or an event of it is damaged.
    """
    found = []
    for number, event in enumerate(open_trace(trace)["traceEvents"]):
        if isinstance(event, dict) and event.get("ph") != "X":
            continue
        wrong = _what_is_wrong(event)
        if wrong:
            raise ValueError(f"event {number} of the trace is damaged: {wrong}.")
        whose = {name: event.get(name) for name in ("cat", "pid", "tid")}
        found.append({**event, **whose})
    return found


def _what_is_wrong(event: object) -> str:
    """Return why an event cannot be read, or ""."""
    if not isinstance(event, dict):
        return f"it is {str(event)[:40]!r} and no object"
    if not isinstance(event.get("name"), str):
        return f"its name is {event.get('name')!r} and no text"
    for key in ("ts", "dur"):
        number = event.get(key)
        if not isinstance(number, NUMBER) or not -LATEST < number < LATEST:
            return f"its {key!r} is {str(number)[:40]!r} and no time"
    if event["dur"] < 0:
        return "it ends before it begins"
    arguments = event.get("args", NOTHING)
    if not isinstance(arguments, dict):
        return f"its args are {str(arguments)[:40]!r} and no object"
    for value in (event.get("cat"), event.get("pid"), event.get("tid")):
        if not isinstance(value, PLAIN):
            return f"its cat, pid or tid is {value!r}, neither a number nor a text"
    if not isinstance(arguments.get("correlation"), PLAIN):
        return "its correlation is neither a number nor a text"
    return ""


def blocks_of(events: Iterable[Event], begins: str) -> list[Event]:
    """Return the blocks of the host whose name begins so, in order. What such a block launched has
    a block of the same name on the device, which is none of them.
    """
    blocks = []
    for event in events:
        if event["cat"] == "user_annotation" and event["name"].startswith(begins):
            blocks.append(event)
    return sorted(blocks, key=lambda event: event["ts"])


def steps_of(events: Iterable[Event]) -> list[Event]:
    """Return the steps that the program marked with `profiler.step()`, in order."""
    return blocks_of(events, "ProfilerStep#")


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
