"""What was seen of a training loop, read from a trace of it."""

import math
import re
import statistics
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from course_tools.timeline.lanes import Span, covered_s, outermost, union
from course_tools.timeline.trace import (
    DRIVER,
    WORK_KINDS,
    Event,
    Trace,
    blocks_of,
    complete_events,
    open_trace,
    steps_of,
    threads_of,
    work_of,
)

PROFILED = 10  # steps under the profiler that count
# The names of blocks in the trace of a loop that this package runs.
FETCH, STEP, SMALLEST = "wait for a batch", "step of the loop", "the smallest operation"
LOADER = "enumerate(DataLoader)#"  # how the profiler's name for a fetch begins
# Between two calls of PyTorch the host runs Python. In a network, however deep, that takes less
# than this: in seven steps that others recorded on GPUs nine in ten pauses took under 0.06 ms, and
# the longer ones were the loader's, or the change from one part of the step to the next. A pause
# that takes longer is work of the loop's own.
PAUSE_S = 0.2e-3
BACKWARD = "autograd::engine::evaluate_function"  # how autograd's name for a function begins
# An operation on the CPU that takes less than so many times as long as an addition of two numbers
# is overhead altogether.
SMALL = 5
# What `.item()` and a mask call, for which the host waits, and torch.cuda.synchronize().
READ = re.compile(r"aten::(_local_scalar_dense|nonzero)$|\w*DeviceSynchronize$")


Typical = Callable[[Sequence[float]], float]


@dataclass(frozen=True)
class LoaderFacts:
    """How a loader makes its batches."""

    workers: int = 0
    cores: int | None = None  #: that workers can use; None if it is not known
    is_dataloader: bool = True  #: of torch; False for a trace that shows none
    #: samples of a batch that are fetched one by one and stacked; 0 for other batches
    batch: int = 0
    batch_bytes: int = 0  #: of the tensors of a batch
    iterable: bool = False  #: whether each worker goes through the whole data set
    sampler: str = ""  #: the code of it, if batches may be drawn by their numbers
    drop_last: bool = False
    in_tensors: bool = False  #: whether the data set is a TensorDataset
    persistent: bool = False  #: whether workers stay from epoch to epoch
    #: whether loading waits, for a drive or a network, rather than computes; None if not known
    waits: bool | None = None
    #: seconds on a core in which the loop's own thread makes a batch; None if workers do
    own_s: float | None = None
    #: whether the loop's thread does not sleep while it waits, but takes in what the workers send
    receives: bool = False
    #: seconds of a step in which the loop waited because workers started anew for an epoch
    restart_s: float = 0.0
    spawned: bool = False  #: workers are new processes that import the program again
    in_notebook: bool = False


@dataclass(frozen=True)
class LoopRecord:
    """What was seen of a training loop. Of two things at once on the device, only the first in the
    list arithmetic, memory, exchange, copies counts.
    """

    device: str  #: as PyTorch writes it, such as "cuda:0"
    kind: str  #: of device
    #: seconds of a step without the profiler, with the wait for its batch: the mean, or on a CPU
    #: the mean wait and the least disturbed step
    step_s: float
    fetch_s: float  #: the part of it in which the loop waited for its batch
    #: seconds of a step in which the device multiplied, convolved or attended; on a CPU computed
    arithmetic_s: float = 0.0
    memory_s: float = 0.0  #: seconds in which it only ran kernels that mostly wait for its memory
    exchange_s: float = 0.0  #: seconds in which it only exchanged data with other ranks
    copies_s: float = 0.0  #: seconds in which it only copied from or to the host
    #: seconds in which the device had nothing to do and the host was outside of PyTorch
    python_s: float = 0.0
    exposed: float = 1.0  #: the share of the wait for a batch in which the device had nothing to do
    #: seconds of a step in which the device did nothing though its next work had been launched
    queued_s: float = 0.0
    operations: int = 0  #: kernels, or on a CPU operations, in a step
    fetches: float = 1.0  #: how many batches are fetched in a step
    reads: float = 0.0  #: how often a step reads a value, as `.item()` does
    waits_s: float = 0.0  #: seconds of a step in which the host waited for the device
    visible: bool = True  #: whether the profiler saw the device work
    #: on a CPU, seconds of a step in which other programs had the core; in a trace those that an
    #: operation took longer than in most steps
    lost_s: float = 0.0
    loader: LoaderFacts = LoaderFacts()

    @property
    def batch_s(self) -> float:
        """Seconds in which one process makes a batch."""
        if self.loader.own_s is not None:
            return self.loader.own_s
        # of w workers that cannot keep up, each takes w steps for its batch
        return self.step_s * self.loader.workers or self.fetch_s

    @property
    def sample_s(self) -> float:
        """Seconds in which one process makes a sample, if samples are fetched one by one."""
        return self.batch_s / self.loader.batch if self.loader.batch else math.inf


def record_of(trace: Trace) -> LoopRecord:
    """Return what a Chrome trace of torch.profiler shows of a training loop. Its times are those
    under the profiler, which slows the host down.

    Raises:
        OSError, ValueError: there is no such file, it is not a Chrome trace, or the program has not
            marked its steps.
    """
    trace = open_trace(trace)
    events = complete_events(trace)
    steps, fetches = _whole_steps(events)
    start, end = steps[0]["ts"], steps[-1]["ts"] + steps[-1]["dur"]
    inside, fetches = _during(start, end, events), _during(start, end, fetches)
    on_cpu = not any(work_of(event) or event["cat"] in DRIVER for event in events)
    seen = LoopRecord(
        device="cpu" if on_cpu else _card_of(trace, inside),
        kind="cpu" if on_cpu else "cuda",  # or ROCm, which PyTorch calls so too
        step_s=1e-6 * (end - start) / len(steps),
        fetch_s=covered_s(_spans(fetches, start, end)) / len(steps),
        fetches=len(fetches) / len(steps),
        loader=LoaderFacts(
            workers=int(any("MultiProcessing" in one["name"] for one in fetches)),
            is_dataloader=bool(fetches),
        ),
    )
    return _read(seen, inside, fetches, steps, (start, end))


def _whole_steps(events: Sequence[Event]) -> tuple[list[Event], list[Event]]:
    """Return the marked steps in which something was called, and the fetches of their thread."""
    steps = steps_of(events)
    if not steps:
        raise ValueError(
            "the trace has no steps. Call `profiler.step()` at the end of each, in a profile with "
            "a schedule, such as profile(schedule=torch.profiler.schedule(wait=5, warmup=2, "
            "active=10)), without which it marks none."
        )
    fetches = [one for one in blocks_of(events, LOADER) if one["tid"] == steps[0]["tid"]]
    called = [event for event in events if event["cat"] in ("cpu_op", *DRIVER)]
    begun = [call["ts"] for call in _outside(called, fetches)]
    if len(steps) > 1 and not any(_begins_in(ts, steps[-1]) for ts in begun):
        steps = steps[:-1]  # what lies between the last `profiler.step()` and `profiler.stop()`
    start, end = steps[0]["ts"], steps[-1]["ts"] + steps[-1]["dur"]
    worked = any(map(work_of, _during(start, end, events)))
    worked = worked or any(_begins_in(ts, one) for ts in begun for one in steps)
    if end <= start or not worked:
        raise ValueError(
            "nothing was called in the steps of the trace: record at least one whole step. A "
            "schedule without repeat=1 begins again, and its last trace may hold only what came "
            "after the last step."
        )
    return steps, fetches


def _during(start: float, end: float, events: Iterable[Event]) -> list[Event]:
    """Return the events that share time with a span."""
    return [event for event in events if event["ts"] < end and event["ts"] + event["dur"] > start]


def _card_of(trace: Mapping[str, Any], events: Iterable[Event]) -> str:
    """Return the name of the card that worked, as far as the trace has it."""
    cards: dict[Any, str] = {}
    listed = trace.get("deviceProperties")
    for card in listed if isinstance(listed, list) else []:
        if isinstance(card, Mapping):
            cards[str(card.get("id"))] = str(card.get("name"))
    used = (cards.get(str(event["pid"])) for event in events if work_of(event))
    # AMD's cards work under other numbers than they are listed by
    alike = next(iter(cards.values())) if len(set(cards.values())) == 1 else None
    return next(filter(None, used), alike) or "a device"


def read_loop(seen: LoopRecord, events: Sequence[Event]) -> LoopRecord:
    """Return the record with what its last steps under the profiler show."""
    fetches, steps = blocks_of(events, FETCH)[-PROFILED:], blocks_of(events, STEP)[-PROFILED:]
    start = fetches[0]["ts"]
    events = [event for event in events if event["ts"] >= start]
    # what the last step has launched ends after it
    return _read(seen, events, fetches, steps, (start, math.inf))


def _read(
    seen: LoopRecord,
    events: Sequence[Event],
    fetches: Sequence[Event],
    steps: Sequence[Event],
    window: tuple[float, float],
) -> LoopRecord:
    """Return the record with what these steps show, between two moments of their trace."""
    blocks, fetched = _spans(steps), _spans(fetches, *window)
    works: dict[str | None, list[Event]] = {}
    for event in events:
        works.setdefault(work_of(event), []).append(event)
    own = _threads_of_the_loop(events, steps)
    # what the host calls in a fetch is the loader's
    calls = _outside((event for event in works.pop(None, []) if event["tid"] in own), fetches)
    on_device = [event for group in works.values() for event in group]
    pauses_s = _pauses_s(blocks, calls, on_device, fetched)
    reading = [call for call in calls if READ.match(call["name"])]
    if seen.kind == "cpu":  # where a fused optimizer reads its own counters of steps, and no result
        optimizers = [event for event in events if event["name"].startswith("Optimizer.step#")]
        reading = _outside(reading, optimizers)
    reads = outermost(_spans(reading))
    reads = tuple(read for read in reads if read.end_s <= blocks[-1].end_s)
    seen = replace(seen, reads=len(reads) / len(steps), visible=bool(on_device))
    if seen.kind == "cpu":
        return _read_cpu(seen, calls, blocks, pauses_s)
    alone_s, exposed = _device_alone(works, fetched, window)
    kernels = len(works.get("arithmetic", [])) + len(works.get("memory", []))
    return replace(
        seen,
        arithmetic_s=alone_s["arithmetic"] / len(steps),
        memory_s=alone_s["memory"] / len(steps),
        exchange_s=alone_s["exchange"] / len(steps),
        copies_s=alone_s["copies"] / len(steps),
        python_s=statistics.mean(pauses_s),
        exposed=exposed,
        queued_s=_queued_s(events, on_device) / len(steps),
        operations=round(kernels / len(steps)),
        waits_s=covered_s(reads) / len(steps),
    )


def _read_cpu(
    seen: LoopRecord, calls: Sequence[Event], blocks: list[Span], pauses_s: list[float]
) -> LoopRecord:
    """Return the record of a loop on a CPU with what the calls in its steps show."""
    # of a loop that this package runs, the least disturbed step counts
    calibrated = any(call["name"] == SMALLEST for call in calls)
    typical: Typical = min if calibrated else statistics.median
    work_s = _typical_work_s(calls, blocks, typical)
    lost_s = 0.0
    if not calibrated:  # what takes an operation longer in a few steps is no arithmetic
        lost_s = max(0.0, _typical_work_s(calls, blocks, statistics.mean) - work_s)
    host = outermost(_spans(call for call in calls if call["cat"] == "cpu_op"))
    return replace(
        seen,
        arithmetic_s=work_s,
        python_s=min(pauses_s) if calibrated else statistics.mean(pauses_s),
        lost_s=lost_s,
        operations=round(
            sum(_lies_in(call, block) for call in host for block in blocks) / len(blocks)
        ),
    )


def _device_alone(
    works: Mapping[str | None, list[Event]], fetched: list[Span], window: tuple[float, float]
) -> tuple[dict[str, float], float]:
    """Return the seconds of each kind of work while no kind before it went on, and the share of the
    waits for a batch in which none did.
    """
    busy: list[Span] = []
    alone_s = {}
    for kind in WORK_KINDS:
        before_s = covered_s(busy)
        busy = union([*busy, *_spans(works.get(kind, []), *window)])
        alone_s[kind] = covered_s(busy) - before_s
    waited_s = covered_s(fetched)
    idle_s = covered_s([*busy, *fetched]) - covered_s(busy)
    return alone_s, idle_s / waited_s if waited_s else 1.0


def _threads_of_the_loop(events: Iterable[Event], steps: Iterable[Event]) -> set[Any]:
    """Return the threads that run the steps: the loop's own, and autograd's."""
    threads = threads_of(events)
    backward = {number for number, name in threads.items() if name == "backward"}
    return backward | {step["tid"] for step in steps}


def _pauses_s(
    blocks: list[Span], calls: Iterable[Event], on_device: Iterable[Event], fetched: list[Span]
) -> list[float]:
    """Return, for each step, the seconds in which the device had nothing to do while the host was
    for longer than `PAUSE_S` neither in PyTorch nor waiting for a batch.
    """
    # and not Python's own functions, which a trace with stacks has too
    inside = [call for call in calls if call["cat"] in ("cpu_op", *DRIVER)]
    updates = _updates([call for call in calls if call["name"].startswith("Optimizer.")], inside)
    busy, device = union([*_spans([*inside, *updates]), *fetched]), union(_spans(on_device))
    found = []
    for block in blocks:
        edges = (Span("", block.start_s, block.start_s), Span("", block.end_s, block.end_s))
        in_calls = union([*_cut(busy, block), *edges], PAUSE_S)
        found.append(block.seconds - covered_s([*in_calls, *_cut(device, block)]))
    return found


def _updates(optimizers: Iterable[Event], operations: Iterable[Event]) -> list[Event]:
    """Return the optimizer's calls without the closure that some of them run: Lightning's closure
    is the whole `training_step` and the backward pass, so the update begins after these.
    """
    backward = [call for call in operations if call["name"].startswith(BACKWARD)]
    ends = sorted(call["ts"] + call["dur"] for call in backward)
    updates: list[Event] = []
    for call in optimizers:
        end = call["ts"] + call["dur"]
        before = bisect_right(ends, end)
        start = max(call["ts"], ends[before - 1]) if before else call["ts"]
        updates.append({**call, "ts": start, "dur": end - start})
    return updates


def _cut(apart: list[Span], block: Span) -> list[Span]:
    """Return the parts that lie in a block, of spans in order that do not overlap."""
    first = bisect_right(apart, block.start_s, key=lambda span: span.end_s)
    last = bisect_left(apart, block.end_s, key=lambda span: span.start_s)
    found = []
    for span in apart[first:last]:
        start_s, end_s = max(span.start_s, block.start_s), min(span.end_s, block.end_s)
        found.append(Span(span.name, start_s, end_s))
    return found


def _queued_s(events: Sequence[Event], on_device: Sequence[Event]) -> float:
    """Return how long the device did nothing although its next work had been launched already: it
    waited for another stream, another rank, or something that is not in the trace.
    """
    launched: dict[Any, float] = {}
    for event in events:
        if event["cat"] in DRIVER:
            launched[event.get("args", {}).get("correlation")] = event["ts"] + event["dur"]
    waited = 0.0
    free = math.inf  # since when the device has had nothing to do
    for event in sorted(on_device, key=lambda event: event["ts"]):
        number = event.get("args", {}).get("correlation")
        if number is not None:
            call_end = launched.get(number, -math.inf)  # it was launched in an earlier step
            waited += max(0.0, event["ts"] - max(free, call_end))
        end = event["ts"] + event["dur"]
        free = end if free == math.inf else max(free, end)
    return 1e-6 * waited


def _spans(events: Iterable[Event], start: float = -math.inf, end: float = math.inf) -> list[Span]:
    """Return the spans of a trace's events, in order, cut to a window; a trace counts in
    microseconds.
    """
    spans = []
    for event in events:
        first, last = max(event["ts"], start), min(event["ts"] + event["dur"], end)
        if first <= last:
            spans.append(Span(event["name"], first * 1e-6, last * 1e-6))
    return sorted(spans, key=lambda span: (span.start_s, -span.end_s))


def _typical_work_s(events: Sequence[Event], steps: list[Span], typical: Typical) -> float:
    """Return what the operations of a step on a CPU work, without the overhead of each."""
    operations = _own_seconds(events)
    if not operations:
        return 0.0
    calibration = _spans(event for event in events if event["name"] == SMALLEST)
    if calibration:
        small = [own_s for op, own_s in operations if _lies_in(op, calibration[0])]
        smallest_s = statistics.median(small)
    else:  # a quarter of a network's calls only look at a tensor in another way
        smallest_s = sorted(own_s for _, own_s in operations)[len(operations) // 4]
    # the seconds in each step, by the name of the operation and which of that name it is
    seconds: dict[tuple[str, int], list[float]] = {}
    starts = [op.start_s for op, _ in operations]
    for step in steps:
        count: Counter[str] = Counter()
        inside = slice(bisect_left(starts, step.start_s), bisect_left(starts, step.end_s))
        for op, own_s in operations[inside]:
            seconds.setdefault((op.name, count[op.name]), []).append(own_s)
            count[op.name] += 1
    work_s = 0.0
    for times_s in seconds.values():
        own_s, share = typical(times_s), len(times_s) / len(steps)
        if calibration:  # of the least disturbed step, what is in most steps
            share = round(share)
        if own_s >= SMALL * smallest_s:
            work_s += share * (own_s - smallest_s)
    return work_s


def _own_seconds(events: Iterable[Event]) -> list[tuple[Span, float]]:
    """Return the operations of the host, in order, with the seconds in which each called no other
    one: `aten::mm` is in the trace inside `aten::matmul`.
    """
    threads: dict[Any, list[Event]] = {}
    for event in events:
        if event["cat"] == "cpu_op":
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


def _outside(events: Iterable[Event], others: Iterable[Event]) -> list[Event]:
    """Return the events that do not begin inside one of the others."""
    spans = union(_spans(others))

    def begins_inside(event: Event) -> bool:
        before = bisect_right(spans, 1e-6 * event["ts"], key=lambda span: span.start_s)
        return before > 0 and 1e-6 * event["ts"] < spans[before - 1].end_s

    return [event for event in events if not begins_inside(event)]


def _begins_in(start: float, step: Event) -> bool:
    return step["ts"] <= start < step["ts"] + step["dur"]


def _lies_in(span: Span, block: Span) -> bool:
    return block.start_s <= span.start_s < block.end_s
