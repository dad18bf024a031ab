"""What was seen of a training loop, by running it or by reading a trace of it."""

import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.profiler import record_function
from torch.utils.data import DataLoader, RandomSampler, Subset, TensorDataset

from course_tools.timeline.lanes import Span, outermost, union
from course_tools.timeline.trace import (
    DRIVER,
    EXCHANGE,
    ON_DEVICE,
    Event,
    complete_events,
    run_profiled,
    steps_of,
)
from course_utils.devices import Device, wait_for
from course_utils.hardware.machine import usable_cores

CALM = 0.8  # of a step on a CPU, so much at least is the time of its own thread on a core
WARM_UP = 3  # steps before anything is timed: they compile, and allocate memory
PROFILED = 10  # steps under the profiler, after a second warm-up
# The names of blocks in the trace.
FETCH, STEP, SMALLEST = "wait for a batch", "step of the loop", "the smallest operation"
# An operation on the CPU that takes less than so many times as long as an addition of two numbers
# is overhead altogether.
SMALL = 5
ASLEEP = 0.5  # a loader that neither computes nor queues for a core for this share of a batch waits
IDLE = 0.3  # and so do workers that keep less than this share of their cores busy


@dataclass(frozen=True)
class LoaderFacts:
    """How a loader makes its batches."""

    workers: int = 0
    cores: int | None = None  #: that workers can use; None if it is not known
    is_dataloader: bool = True  #: of torch
    #: samples of a batch that are fetched one by one from tensors in memory; 0 for other data
    from_tensors: int = 0
    shuffled: bool = False
    #: whether loading waits, for a drive or a network, rather than computes; None if not known
    waits: bool | None = None
    starts_anew: bool = False  #: workers are new processes that import the program again
    in_notebook: bool = False


@dataclass(frozen=True)
class LoopRecord:
    """What was seen of a training loop. Of two things at once on the device, only the first in the
    list computing, exchanging, copying counts.
    """

    device: str  #: as PyTorch writes it, such as "cuda:0"
    kind: str  #: of device
    #: seconds of a step without the profiler, with the wait for its batch: the mean, or on a CPU
    #: the mean wait and the least disturbed step
    step_s: float
    fetch_s: float  #: the part of it in which the loop waited for its batch
    compute_s: float = 0.0  #: seconds of a step in which the device computed
    exchange_s: float = 0.0  #: seconds in which it only exchanged data with other ranks
    copies_s: float = 0.0  #: seconds in which it only copied from or to the host
    exposed: float = 1.0  #: the share of the wait for a batch in which the device had nothing to do
    #: seconds of a step in which the device did nothing though its next work had been launched
    queued_s: float = 0.0
    operations: int = 0  #: kernels, or on a CPU operations, in a step
    reads: float = 0.0  #: how often a step reads a value, as `.item()` does
    visible: bool = True  #: whether the profiler saw the device work
    disturbed: bool = False  #: on a CPU, the loop's thread had a core for too little of each step
    loader: LoaderFacts = LoaderFacts()


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
    facts = facts_of(loader)
    lead_in = WARM_UP + 2 * facts.workers  # until the batches that the workers have are used up
    start, children_s = clock(), _children_s()
    try:
        with closing(_endless(loader)) as batches:
            for _ in range(lead_in):
                step(next(batches))
            timed, asleep = _time_steps(step, batches, device, steps, max_s, clock)

            def profiled_steps() -> None:
                for _ in range(lead_in + PROFILED):
                    with record_function(FETCH):
                        batch = next(batches)
                    with record_function(STEP):
                        step(batch)
                if device.kind == "cpu":
                    _run_smallest()

            trace = run_profiled(profiled_steps, device)
    except RuntimeError as error:
        if facts.starts_anew and "exited unexpectedly" in str(error):
            raise RuntimeError(_why_workers_end(facts)) from error
        raise
    if facts.workers == 0:
        waits: bool | None = asleep > ASLEEP
    elif children_s is None or facts.starts_anew or getattr(loader, "persistent_workers", False):
        waits = None  # their start is in it, or they have not ended yet
    else:
        busy_cores = ((_children_s() or 0.0) - children_s) / (clock() - start)
        waits = busy_cores < IDLE * min(facts.workers, facts.cores or 1)
    seen = replace(timed, loader=replace(facts, waits=waits))
    return read_loop(seen, complete_events(trace))


def facts_of(loader: Iterable[Any]) -> LoaderFacts:
    """Return what a loader says about itself."""
    in_notebook = not hasattr(sys.modules["__main__"], "__file__")
    facts = LoaderFacts(cores=usable_cores(), in_notebook=in_notebook)
    if not isinstance(loader, DataLoader):
        return replace(facts, is_dataloader=False)
    dataset = loader.dataset
    while isinstance(dataset, Subset):
        dataset = dataset.dataset
    one_by_one = isinstance(dataset, TensorDataset)
    context = loader.multiprocessing_context or torch.multiprocessing
    return replace(
        facts,
        workers=loader.num_workers,
        from_tensors=loader.batch_size or 0 if one_by_one else 0,
        shuffled=isinstance(loader.sampler, RandomSampler),
        starts_anew=context.get_start_method() != "fork",
    )


def _why_workers_end(facts: LoaderFacts) -> str:
    """Return why workers end at once where each starts as a new process, and the cure."""
    return (
        f"the {facts.workers} workers of the loader ended before the first batch. On this system "
        "each starts as a new process that imports your program, and cannot find what only a "
        "notebook's cell defines (\"Can't get attribute 'MyDataset' on <module '__main__'>\"). "
        "In a notebook, write the class of the dataset into a file (%%writefile my_data.py) and "
        'import it; in a script, start the training under `if __name__ == "__main__":`. '
        "num_workers=0 works everywhere."
    )


def _time_steps(
    step: Callable[[Any], object],
    batches: Iterator[Any],
    device: Device,
    steps: int,
    max_s: float,
    clock: Callable[[], float],
) -> tuple[LoopRecord, float]:
    """Time steps of the loop without the profiler. Return also the share of the wait for a batch in
    which this thread neither computed nor queued for a core.
    """
    fetches_s: list[float] = []
    steps_s: list[float] = []
    own_s = awake_s = 0.0  # in steps, on a core; in fetches, on a core or waiting for one
    wait_for(device)
    start = clock()
    while len(steps_s) < steps and (len(steps_s) < WARM_UP or clock() - start < max_s):
        asked, awake = clock(), _awake_s()
        batch = next(batches)
        awake_s += _awake_s() - awake
        fetched, own_start = clock(), time.thread_time()
        step(batch)
        steps_s.append(clock() - fetched)
        fetches_s.append(fetched - asked)
        own_s += time.thread_time() - own_start
    wait_for(device)
    mean_s = (clock() - start) / len(steps_s)
    fetch_s = statistics.mean(fetches_s)  # workers deliver in bursts, so the mean counts
    on_cpu = device.kind == "cpu"
    timed = LoopRecord(
        device=str(device),
        kind=device.kind,
        step_s=fetch_s + min(steps_s) if on_cpu else mean_s,
        fetch_s=fetch_s,
        disturbed=on_cpu and own_s < CALM * min(steps_s) * len(steps_s),
    )
    return timed, 1 - awake_s / max(sum(fetches_s), 1e-9)


def _awake_s() -> float:
    """Return how long this thread has been on a core or, where Linux says so, waiting for one."""
    try:
        with open("/proc/thread-self/schedstat") as file:
            queued_ns = int(file.read().split()[1])
    except (OSError, IndexError, ValueError):
        queued_ns = 0
    return time.thread_time() + 1e-9 * queued_ns


def _children_s() -> float | None:
    """Return the processor time of all processes that this one started and that have ended; None
    on Windows, which does not say.
    """
    if os.name == "nt":
        return None
    times = os.times()
    return times.children_user + times.children_system


def record_of(trace: Mapping[str, Any]) -> LoopRecord:
    """Return what a Chrome trace of torch.profiler shows of a training loop. Its times are those
    under the profiler, which slows the host down.

    Raises:
        ValueError: the program has not marked its steps.
    """
    events = complete_events(trace)
    steps = steps_of(events)
    if not steps:
        raise ValueError(
            "the trace has no steps. Call `profiler.step()` at the end of each, as the "
            "documentation of torch.profiler shows, and profile again."
        )
    start, end = steps[0]["ts"], steps[-1]["ts"] + steps[-1]["dur"]
    inside = [event for event in events if event["ts"] < end and event["ts"] + event["dur"] > start]
    cards = {card["id"]: card["name"] for card in trace.get("deviceProperties", [])}
    used = [cards[event["pid"]] for event in inside if _on(cards, event)]
    fetches = [event for event in inside if event["name"].startswith("enumerate(DataLoader)#")]
    fetched_s = _covered(_spans(fetches, start, end))
    seen = LoopRecord(
        device=used[0] if used else "a device",
        kind="cuda",  # or ROCm, which PyTorch calls so too
        step_s=1e-6 * (end - start) / len(steps),
        fetch_s=fetched_s / len(steps),
        loader=LoaderFacts(workers=int(any("MultiProcessing" in one["name"] for one in fetches))),
    )
    return _add_device(seen, inside, fetches, (start, end), len(steps))


def _on(cards: Mapping[Any, str], event: Event) -> bool:
    return event["cat"] in ON_DEVICE and event["pid"] in cards


def read_loop(seen: LoopRecord, events: list[dict[str, Any]]) -> LoopRecord:
    """Return the record with what its last steps under the profiler show."""
    fetches = [event for event in events if event["name"] == FETCH][-PROFILED:]
    steps = [event for event in events if event["name"] == STEP][-PROFILED:]
    start = fetches[0]["ts"]
    events = [event for event in events if event["ts"] >= start]
    if seen.kind == "cpu":
        blocks = _spans(steps)
        host = outermost(_spans(event for event in events if event["cat"] == "cpu_op"))
        calls = [call for call in host if _lies_in(call, blocks[-1])]
        return replace(seen, compute_s=_typical_work_s(events, blocks), operations=len(calls))
    # what the last step has launched ends after it
    return _add_device(seen, events, fetches, (start, float("inf")), len(steps))


def _add_device(
    seen: LoopRecord,
    events: list[dict[str, Any]],
    fetches: list[dict[str, Any]],
    window: tuple[float, float],
    steps: int,
) -> LoopRecord:
    """Return the record with what the device did between two moments, for each step."""
    on_device = [event for event in events if event["cat"] in ON_DEVICE]
    kinds: dict[str, list[dict[str, Any]]] = {"work": [], "exchange": [], "copies": []}
    for event in on_device:
        if event["cat"] == "kernel" and EXCHANGE.match(event["name"]):
            kinds["exchange"].append(event)
        elif event["cat"] == "gpu_memcpy" and "DtoD" not in event["name"]:
            kinds["copies"].append(event)
        else:
            kinds["work"].append(event)
    work, exchange, copies = (_spans(group, *window) for group in kinds.values())
    compute_s = _covered(work)
    exchanged_s = _covered(work + exchange)
    moved_s = _covered(work + exchange + copies)
    fetched = _spans(fetches, *window)
    idle_s = _covered(work + exchange + copies + fetched) - moved_s
    return replace(
        seen,
        compute_s=compute_s / steps,
        exchange_s=(exchanged_s - compute_s) / steps,
        copies_s=(moved_s - exchanged_s) / steps,
        exposed=idle_s / _covered(fetched) if fetched else 1.0,
        queued_s=_queued_s(events, on_device) / steps,
        operations=round(len(kinds["work"]) / steps),
        reads=sum(event["name"] == "aten::_local_scalar_dense" for event in events) / steps,
        visible=bool(on_device),
    )


def _queued_s(events: list[dict[str, Any]], on_device: list[dict[str, Any]]) -> float:
    """Return how long the device did nothing although its next work had been launched already: it
    waited for another stream, another rank, or something that is not in the trace.
    """
    launched: dict[Any, float] = {}
    for event in events:
        if event["cat"] in DRIVER:
            launched[event.get("args", {}).get("correlation")] = event["ts"] + event["dur"]
    waited = 0.0
    free = float("inf")  # since when the device has had nothing to do
    for event in sorted(on_device, key=lambda event: event["ts"]):
        number = event.get("args", {}).get("correlation")
        if number is not None:
            call_end = launched.get(number, float("-inf"))  # it was launched in an earlier step
            waited += max(0.0, event["ts"] - max(free, call_end))
        end = event["ts"] + event["dur"]
        free = end if free == float("inf") else max(free, end)
    return 1e-6 * waited


def _covered(spans: Iterable[Span]) -> float:
    return sum(span.seconds for span in union(spans))


def _spans(
    events: Iterable[Event], start: float = float("-inf"), end: float = float("inf")
) -> list[Span]:
    """Return the spans of a trace's events, in order, cut to a window; a trace counts in
    microseconds.
    """
    spans = []
    for event in events:
        first, last = max(event["ts"], start), min(event["ts"] + event["dur"], end)
        if first <= last:
            spans.append(Span(event["name"], first * 1e-6, last * 1e-6))
    return sorted(spans, key=lambda span: (span.start_s, -span.end_s))


def _typical_work_s(events: list[dict[str, Any]], steps: list[Span]) -> float:
    """Return what the operations of a step on a CPU work, without the overhead of each. Of each
    operation the least disturbed time counts, since other programs interrupt some.
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
    usual = [min(times_s) for times_s in seconds.values() if 2 * len(times_s) > len(steps)]
    return sum(least_s - smallest_s for least_s in usual if least_s >= SMALL * smallest_s)


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
