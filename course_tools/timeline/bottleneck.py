"""Find what limits a training loop: its loader, its copies, its launches or its arithmetic."""

import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch.profiler import record_function

from course_tools.timeline.lanes import Span, outermost, union
from course_tools.timeline.trace import run_profiled
from course_utils.devices import Device, as_device, wait_for
from course_utils.hardware.machine import usable_cores
from course_utils.text import format_seconds, html_card

if TYPE_CHECKING:
    import pandas as pd

CLEAR = 0.1  # the largest part has to lead the second by this share of the step
CALM = 0.8  # of a step on a CPU, so much at least is the time of its own thread on a core
WARM_UP = 3  # steps before anything is timed: they compile, and allocate memory
PROFILED = 10  # steps under the profiler, after a second warm-up
# The names of blocks in the trace.
FETCH, STEP, SMALLEST = "wait for a batch", "step of the loop", "the smallest operation"
# An operation on the CPU that takes less than so many times as long as an addition of two numbers
# is overhead altogether.
SMALL = 5
# The most workers to try for each core. Those that wait for a drive need no core of their own, but
# each is a process with its own memory.
WORKERS_A_CORE = 4
PARTS = ("loader", "copies", "launches", "arithmetic")
VERDICTS = {
    "loader": "The loader limits this loop",
    "copies": "Copies limit this loop",
    "launches": "Launches limit this loop",
    "arithmetic": "Arithmetic limits this loop",
    None: "What limits is not clear",
}


@dataclass(frozen=True)
class LoopRecord:
    """A recorded training loop: its times without the profiler, and its spans with it."""

    device: str  #: as PyTorch writes it, such as "cuda:0"
    kind: str  #: of device
    #: seconds of a step without the profiler, with the wait for its batch: the mean, or on a CPU
    #: the mean wait and the step that other programs disturbed least
    step_s: float
    fetch_s: float  #: the part of it in which the loop waited for its batch
    workers: int  #: of the loader
    cores: int  #: that the workers can use
    steps: int  #: how many the spans are from
    fetches: tuple[Span, ...] = ()  #: when the loop waited for a batch
    work: tuple[Span, ...] = ()  #: kernels of the device; on a CPU, operations less their overhead
    copies: tuple[Span, ...] = ()  #: between host and device
    operations: int = 0  #: kernels, or on a CPU operations, in all steps
    reads: int = 0  #: how often a value was read, as `.item()` does, in all steps
    disturbed: bool = False  #: on a CPU, the loop's thread had a core for too little of each step


@dataclass(frozen=True)
class Bottleneck:
    """The part that limits a training loop, with the numbers behind the verdict."""

    device: str  #: where the loop ran
    limit: str | None  #: "loader", "copies", "launches" or "arithmetic"; None if it is not clear
    step_s: float  #: seconds of a step, with the wait for its batch
    #: seconds of a step in which the device had nothing to do because the loop waited for a batch
    #: ("loader"), only a copy between host and device went on ("copies"), the host prepared or
    #: called operations and nothing else went on ("launches"), and the device computed
    #: ("arithmetic"); they add up to the step
    parts_s: dict[str, float]
    operations: int  #: kernels, or on a CPU operations, in a step
    #: how many workers to try, where the loader limits; None where more would not help
    workers_to_try: int | None
    advice: str  #: what to try first
    doubt: str  #: why there is no verdict, or ""

    def share(self, part: str) -> float:
        """Return the share of the step that a part takes: "loader", "copies", "launches" or
        "arithmetic".
        """
        return self.parts_s[part] / self.step_s

    def to_frame(self) -> "pd.DataFrame":
        """Return the four parts as a pandas table, in milliseconds and as shares of the step."""
        import pandas as pd

        rows = [(part, 1e3 * self.parts_s[part], self.share(part)) for part in PARTS]
        return pd.DataFrame(rows, columns=["part", "ms a step", "share"]).set_index("part")

    def __repr__(self) -> str:
        shares = ", ".join(f"{part} {self.share(part):.0%}" for part in PARTS)
        step = f"{format_seconds(self.step_s)} a step on {self.device}"
        numbers = f"of {step}, {shares} ({self.operations} operations a step)."
        doubt = f" {self.doubt}" if self.doubt else ""
        return f"{VERDICTS[self.limit]}: {numbers}{doubt} Try first: {self.advice}"

    def _repr_html_(self) -> str:
        rows = []
        for part in PARTS:
            rows.append((part, format_seconds(self.parts_s[part]), f"{self.share(part):.0%}"))
        return html_card("Where a step's time goes", ("part", "time", "share"), rows, repr(self))


def find_bottleneck(
    step: Callable[[Any], object],
    loader: Iterable[Any],
    *,
    device: Device | str | None = None,
    steps: int = 20,
    max_s: float = 30.0,
) -> Bottleneck:
    """Run a few steps of a training loop, and say what limits it and what to try first.

    The steps are real: they train the model further. They run once without the profiler, which
    gives the times, and once with it, which shows when the device worked.

    Args:
        step: takes one training step on a batch, with its copy to the device.
        loader: yields batches, such as a DataLoader. It is started again when it ends.
        device: where `step` works; a `Device`, its name, or None for the best one.
        steps: how many to time; some more run as a warm-up and under the profiler.
        max_s: time no further step after this many seconds.

    Returns:
        The verdict. Its `limit` is None where two parts take about equally long, or where the
        profiler cannot see the device.

    Raises:
        ValueError: the loader yields nothing, or ended early and cannot be started again.
    """
    return judge(record_loop(step, loader, as_device(device), steps=steps, max_s=max_s))


def judge(seen: LoopRecord) -> Bottleneck:
    """Return the verdict on what was seen of a loop.

    Times of the device are the profiler's, since it does not slow kernels down. What the host needs
    for its calls is what is left of the step without the profiler, which does slow calls down.
    """
    parts_s = _parts(seen)
    first, second = sorted(PARTS, key=parts_s.__getitem__, reverse=True)[:2]
    doubt = ""
    if first != "loader" and seen.kind != "cpu" and not seen.work:
        doubt = (
            f"PyTorch's profiler saw no work on {seen.device}, so the rest is not split; "
            "if that surprises you, check that the model is on that device."
        )
    elif first != "loader" and seen.disturbed:
        doubt = (
            "Other programs had the core for a part of each step, or the step itself waits: "
            "ask again on a quiet machine."
        )
    elif parts_s[first] - parts_s[second] < CLEAR * seen.step_s:
        doubt = f"The {first} and the {second} take about equally long."
    workers = _workers_to_try(seen, parts_s["loader"]) if first == "loader" else None
    return Bottleneck(
        device=seen.device,
        limit=None if doubt else first,
        step_s=seen.step_s,
        parts_s=parts_s,
        operations=round(seen.operations / max(seen.steps, 1)),
        workers_to_try=workers,
        advice=_advise(first, seen, workers),
        doubt=doubt,
    )


def _parts(seen: LoopRecord) -> dict[str, float]:
    """Return the seconds of a step that each part takes. Of two at once, the later one in the list
    arithmetic, copies, loader is hidden and costs nothing.
    """
    steps = max(seen.steps, 1)
    work_s = _covered(seen.work)
    moved_s = _covered(seen.work + seen.copies)
    all_s = _covered(seen.work + seen.copies + seen.fetches)
    fetched_s = _covered(seen.fetches)
    exposed = (all_s - moved_s) / fetched_s if fetched_s else 1.0
    parts_s = {
        "loader": seen.fetch_s * exposed,
        "copies": (moved_s - work_s) / steps,
        "arithmetic": work_s / steps,
    }
    # the profiled steps may have been slower than the others
    total_s = max(sum(parts_s.values()), seen.step_s)
    parts_s = {part: seconds * seen.step_s / total_s for part, seconds in parts_s.items()}
    parts_s["launches"] = max(0.0, seen.step_s - sum(parts_s.values()))
    return parts_s


def _covered(spans: Iterable[Span]) -> float:
    return sum(span.seconds for span in union(spans))


def _workers_to_try(seen: LoopRecord, loader_s: float) -> int | None:
    """Return how many workers prepare batches about as fast as the rest of the step uses them, but
    no more than a few for each core; None if the loop has so many already.

    The time of a batch is divided by that of the rest, and the shorter the rest is, the rougher is
    the number.
    """
    # of w workers that cannot keep up, each takes w steps for its batch
    one_batch_s = seen.step_s * seen.workers if seen.workers else seen.fetch_s
    rest_s = max(seen.step_s - loader_s, 1e-3 * seen.step_s)
    enough = max(math.ceil(one_batch_s / rest_s), seen.workers + 1)
    workers = min(enough, WORKERS_A_CORE * seen.cores)
    return workers if workers > seen.workers else None


def _advise(part: str, seen: LoopRecord, workers: int | None) -> str:
    if part == "loader":
        if workers is None:
            return (
                f"prepare the data once and store them: {seen.workers} workers on {seen.cores} "
                "cores do not keep up, and more would hardly help."
            )
        loader = f"DataLoader(..., num_workers={workers})"
        if workers <= seen.cores:
            return f"{loader}, which should be about enough."
        return (
            f"{loader} if the workers wait for a drive, and then ask again: the number is rough. "
            f"If they compute, they need as many cores, and this machine has {seen.cores}: then "
            "prepare the data once and store them."
        )
    if part == "copies":
        return (
            "DataLoader(..., pin_memory=True) and batch.to(device, non_blocking=True); copy the "
            "bytes as they are, such as uint8, and convert them on the device."
        )
    if part == "launches":
        if seen.reads >= max(seen.steps, 1) and seen.kind != "cpu":
            return "read values such as loss.item() once an epoch and not in every step."
        return "a larger batch, or torch.compile(model), which merges operations."
    if seen.kind == "cpu":
        return "a GPU, since the processor is busy computing; or a smaller network or image."
    return "16 bits (torch.autocast): the device is busy, so only less or cheaper work helps."


def record_loop(
    step: Callable[[Any], object],
    loader: Iterable[Any],
    device: Device,
    *,
    steps: int,
    max_s: float,
    clock: Callable[[], float] = time.perf_counter,
) -> LoopRecord:
    """Run the loop, first without and then with the profiler, and return what was seen."""
    workers = getattr(loader, "num_workers", 0)
    lead_in = WARM_UP + 2 * workers  # until the batches that the workers have ready are used up
    with closing(_endless(loader)) as batches:
        for _ in range(lead_in):
            step(next(batches))
        timed = _time_steps(step, batches, device, steps, max_s, clock)

        def profiled_steps() -> None:
            for _ in range(lead_in + PROFILED):
                with record_function(FETCH):
                    batch = next(batches)
                with record_function(STEP):
                    step(batch)
            if device.kind == "cpu":
                _run_smallest()

        trace = run_profiled(profiled_steps, device)
    return add_spans(replace(timed, workers=workers), trace["traceEvents"])


def _time_steps(
    step: Callable[[Any], object],
    batches: Iterator[Any],
    device: Device,
    steps: int,
    max_s: float,
    clock: Callable[[], float],
) -> LoopRecord:
    """Time steps of the loop without the profiler; how many workers it has is not known here."""
    fetches_s: list[float] = []
    steps_s: list[float] = []
    own_s = 0.0  # in which this thread had a core
    wait_for(device)
    start = clock()
    while len(steps_s) < steps and (len(steps_s) < WARM_UP or clock() - start < max_s):
        asked = clock()
        batch = next(batches)
        fetched, own_start = clock(), time.thread_time()
        step(batch)
        steps_s.append(clock() - fetched)
        fetches_s.append(fetched - asked)
        own_s += time.thread_time() - own_start
    wait_for(device)
    mean_s = (clock() - start) / len(steps_s)
    fetch_s = statistics.mean(fetches_s)  # workers deliver in bursts, so the mean counts
    on_cpu = device.kind == "cpu"
    return LoopRecord(
        device=str(device),
        kind=device.kind,
        step_s=fetch_s + min(steps_s) if on_cpu else mean_s,
        fetch_s=fetch_s,
        workers=0,
        cores=usable_cores(),
        steps=PROFILED,
        disturbed=on_cpu and own_s < CALM * min(steps_s) * len(steps_s),
    )


def add_spans(seen: LoopRecord, events: Iterable[Mapping[str, Any]]) -> LoopRecord:
    """Return the record with the spans of its last steps, read from the events of a Chrome
    trace.
    """
    events = [event for event in events if event["ph"] == "X"]
    fetches = _spans(event for event in events if event["name"] == FETCH)[-seen.steps :]
    steps = _spans(event for event in events if event["name"] == STEP)[-seen.steps :]
    events = [event for event in events if event["ts"] * 1e-6 >= fetches[0].start_s]
    if seen.kind == "cpu":
        host = _spans(event for event in events if event.get("cat") == "cpu_op")
        calls = [op for op in outermost(host) if _lies_in(op, steps[-1])]
        work = tuple(_typical_work(events, steps))
        last = (fetches[-1],)  # as the work is that of one step
        return replace(seen, steps=1, fetches=last, work=work, operations=len(calls))
    copies = [event for event in events if event.get("cat") == "gpu_memcpy"]
    inside = [event for event in copies if "DtoD" in event["name"]]
    kernels = [event for event in events if event.get("cat") in ("kernel", "gpu_memset")]
    reads = [event for event in events if event["name"] == "aten::_local_scalar_dense"]
    return replace(
        seen,
        steps=len(steps),
        fetches=tuple(fetches),
        work=tuple(_spans(kernels + inside)),
        copies=tuple(_spans(event for event in copies if event not in inside)),
        operations=len(kernels) + len(inside),
        reads=len(reads),
    )


def _spans(events: Iterable[Mapping[str, Any]]) -> list[Span]:
    """Return the spans of a trace's events, in order; a trace counts microseconds."""
    spans = []
    for event in events:
        start_s = event["ts"] * 1e-6
        spans.append(Span(event["name"], start_s, start_s + event["dur"] * 1e-6))
    return sorted(spans, key=lambda span: (span.start_s, -span.end_s))


def _typical_work(events: list[Mapping[str, Any]], steps: list[Span]) -> list[Span]:
    """Return what the operations of a typical step on a CPU work, without the overhead of each,
    laid end to end from the start of the last step.

    The typical step takes the least disturbed time of each operation, since other programs
    interrupt some.
    """
    operations = _own_seconds(events)
    (calibration,) = _spans(event for event in events if event["name"] == SMALLEST)
    smallest_s = statistics.median(own_s for op, own_s in operations if _lies_in(op, calibration))
    # the seconds in each step, by the name of the operation and which of that name it is
    seconds: dict[tuple[str, int], list[float]] = {}
    for step in steps:
        count: Counter[str] = Counter()
        for op, own_s in operations:
            if _lies_in(op, step):
                seconds.setdefault((op.name, count[op.name]), []).append(own_s)
                count[op.name] += 1
    work, start_s = [], steps[-1].start_s
    for (name, _), times_s in seconds.items():
        least_s = min(times_s)
        if least_s >= SMALL * smallest_s and 2 * len(times_s) > len(steps):
            work.append(Span(name, start_s, start_s + least_s - smallest_s))
            start_s = work[-1].end_s
    return work


def _own_seconds(events: Iterable[Mapping[str, Any]]) -> list[tuple[Span, float]]:
    """Return the operations of the host, in order, with the seconds in which each called no other
    one: `aten::mm` is in the trace inside `aten::matmul`.
    """
    threads: dict[Any, list[Mapping[str, Any]]] = {}
    for event in events:
        if event.get("cat") == "cpu_op":
            threads.setdefault(event["tid"], []).append(event)
    found: list[tuple[Span, float]] = []
    for group in threads.values():
        own: dict[Span, float] = {}
        callers: list[Span] = []  # of the operation at hand, the outermost first
        for span in _spans(group):
            while callers and callers[-1].end_s <= span.start_s:
                callers.pop()
            if callers:
                own[callers[-1]] -= span.seconds
            own[span] = span.seconds
            callers.append(span)
        found += own.items()
    return sorted(found, key=lambda item: item[0].start_s)


def _lies_in(span: Span, block: Span) -> bool:
    return block.start_s <= span.start_s < block.end_s


def _run_smallest() -> None:
    """Run additions of two numbers, which cost nothing but their call."""
    one = torch.ones(())
    with record_function(SMALLEST):
        for _ in range(200):
            torch.add(one, one)


def _endless(loader: Iterable[Any]) -> Generator[Any, None, None]:
    """Yield the batches of a loader, epoch after epoch."""
    found = True
    while found:
        found = False
        for batch in loader:
            found = True
            yield batch
    raise ValueError(
        "the loader yields no batch, or ended early and cannot be started again, as a generator "
        "cannot. Pass a DataLoader or a list of batches."
    )
