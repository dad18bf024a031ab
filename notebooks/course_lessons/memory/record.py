"""Measure what something takes of the CPU: the memory that PyTorch hands out, and the time."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch.profiler import ProfilerActivity, profile

from course_tools.timeline.trace import read_trace, silence_profiler
from course_utils.timing import QUICK_S, using_threads
from course_utils.units import format_bytes


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
    silence_profiler()
    on_cpu = [ProfilerActivity.CPU]
    # torch 2.11 warns without acc_events
    with profile(activities=on_cpu, profile_memory=True, acc_events=True) as profiler:
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


def without_slow_bf16(runs: Mapping[str, Callable[[], object]]) -> dict[str, Callable[[], object]]:
    """Return the runs, on a CPU without instructions for bfloat16 without those that say "bf16":
    they take minutes there (measured: 12 times the time of fp32, on an AMD EPYC with AVX2).
    """
    return {name: run for name, run in runs.items() if "bf16" not in name or _has_fast_bf16()}


def _has_fast_bf16() -> bool:
    try:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    except AttributeError:  # a PyTorch without oneDNN, as on a Mac
        return True


def cpu_times_s(
    runs: Mapping[str, Callable[[], object]], *, rounds: int = 3, enough_s: float = 20
) -> dict[str, float]:
    """Return the median CPU time of each run in seconds, with one thread.

    CPU time is the processor's work for this process alone. Of several threads it would also count
    the waiting for each other, which is longer on a busy machine. The runs take turns, so that a
    change of the clock speed hits all of them; after a round that ends beyond `enough_s` seconds
    there is no other.
    """
    enough_s = min(enough_s, QUICK_S)
    times_s: dict[str, list[float]] = {name: [] for name in runs}
    begin = time.process_time()
    with using_threads(1):
        for _ in range(rounds):
            for name, run in runs.items():
                start = time.process_time()
                run()
                times_s[name].append(time.process_time() - start)
            if time.process_time() - begin > enough_s:
                break
    return {name: statistics.median(each) for name, each in times_s.items()}
