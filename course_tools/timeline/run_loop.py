"""Run a few steps of a training loop, and record what is seen of it."""

import inspect
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.profiler import record_function
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    TensorDataset,
)

from course_tools.timeline.loop_record import (
    FETCH,
    PROFILED,
    SMALLEST,
    STEP,
    LoaderFacts,
    LoopRecord,
    read_loop,
)
from course_tools.timeline.trace import complete_events, run_profiled
from course_utils.devices import Device, wait_for
from course_utils.hardware.machine import usable_cores

WARM_UP = 3  # steps before anything is timed: they compile, and allocate memory
# A loader waits, rather than computes, if it sleeps for this share of the time in which it does not
# queue for a core.
ASLEEP = 0.5
LOOK_S = 0.1  # between two looks at the workers
SAMPLERS = {
    RandomSampler: "RandomSampler(dataset)",
    SequentialSampler: "SequentialSampler(dataset)",
}
END = object()  # of an epoch


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
    try:
        with closing(_Batches(loader)) as batches:
            first = next(batches)
            _check(step, first)
            facts = replace(facts, batch_bytes=_bytes_of(first))
            step(first)
            for _ in range(lead_in - 1):
                step(next(batches))
            timed = _time_steps(step, batches, device, steps, max_s, clock, facts)

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
        if facts.spawned and "exited unexpectedly" in str(error):
            raise RuntimeError(_why_workers_end(facts)) from error
        raise
    timing, on_core_s, asleep_s = timed
    seen = read_loop(timing, complete_events(trace))
    if device.kind == "cpu":
        asleep_s = min(asleep_s, seen.python_s)  # what sleeps in an operation waits for a core
        lost_s = timing.step_s - timing.fetch_s - on_core_s - asleep_s
        seen = replace(seen, lost_s=max(0.0, lost_s))
    return seen


def _check(step: object, batch: object) -> None:
    """Refuse in words what cannot be called with a batch."""
    if not callable(step):
        raise TypeError(
            "find_bottleneck needs a function that takes one training step on a batch, but got "
            f"{type(step).__name__}. Let torch.profiler record the loop of a Trainer, and ask "
            "bottleneck_of(trace)."
        )
    try:
        signature = inspect.signature(step)
    except (TypeError, ValueError):  # of a function that is not written in Python
        return
    try:
        signature.bind(batch)
    except TypeError:
        kind = type(batch).__name__
        parts = f"{kind} of {len(batch)}" if isinstance(batch, tuple | list) else kind
        raise TypeError(
            f"find_bottleneck calls step with one argument, a batch of the loader (here a {parts}),"
            f" but step takes {signature}. Write `def step(batch):`, and unpack the batch in it."
        ) from None


def _bytes_of(batch: Any) -> int:
    """Return the bytes of the tensors in a batch."""
    if isinstance(batch, torch.Tensor):
        return batch.nbytes
    parts = batch.values() if isinstance(batch, Mapping) else batch
    nested = isinstance(batch, Mapping | list | tuple)
    return sum(map(_bytes_of, parts)) if nested else 0


def facts_of(loader: Iterable[Any]) -> LoaderFacts:
    """Return what a loader says about itself."""
    in_notebook = not hasattr(sys.modules["__main__"], "__file__")
    facts = LoaderFacts(cores=usable_cores(), in_notebook=in_notebook)
    if not isinstance(loader, DataLoader):
        return replace(facts, is_dataloader=False, iterable=True)
    dataset = loader.dataset
    while isinstance(dataset, Subset):
        dataset = dataset.dataset
    iterable = isinstance(dataset, IterableDataset)
    sampler = loader.sampler
    if isinstance(sampler, BatchSampler):  # of whole batches
        sampler = sampler.sampler
    one_by_one = not iterable and not hasattr(dataset, "__getitems__")
    return replace(
        facts,
        workers=loader.num_workers,
        batch=loader.batch_size or 0 if one_by_one else 0,
        sampler=SAMPLERS.get(type(sampler), "sampler") if one_by_one else "",
        iterable=iterable,
        drop_last=loader.drop_last,
        in_tensors=isinstance(dataset, TensorDataset),
        persistent=loader.persistent_workers,
        spawned=_start_method(loader) != "fork",
    )


def _start_method(loader: DataLoader) -> str:
    """Return how workers start, without settling it for the process."""
    context = loader.multiprocessing_context or torch.multiprocessing
    chosen = context.get_start_method(allow_none=True)
    return chosen or multiprocessing.get_all_start_methods()[0]  # the first is the default


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


@dataclass
class _StepTimes:
    """What the clocks said of some steps of a loop, in seconds."""

    fetches_s: list[float] = field(default_factory=list)
    steps_s: list[float] = field(default_factory=list)
    restarts_s: list[float] = field(default_factory=list)  #: fetches of an epoch's first batch
    fetching_s: float = 0.0  #: of the fetches, in which this thread was on a core
    awake_s: float = 0.0  #: of the fetches, in which it was on a core or queued for one
    on_core_s: float = 0.0  #: of the steps, in which it was on a core
    asleep_s: float = 0.0  #: of the steps, in which it neither was nor queued for one

    def take(
        self, step: Callable[[Any], object], batches: "_Batches", clock: Callable[[], float]
    ) -> None:
        """Take one step, and note its times."""
        epochs, asked, awake = batches.epochs, clock(), _awake_s()
        fetch_began = time.thread_time()
        batch = next(batches)
        fetched, awake_then, on_core = clock(), _awake_s(), time.thread_time()
        self.awake_s += awake_then - awake
        self.fetching_s += on_core - fetch_began
        step(batch)
        ended = clock()
        self.on_core_s += time.thread_time() - on_core
        self.asleep_s += max(0.0, ended - fetched - (_awake_s() - awake_then))
        self.steps_s.append(ended - fetched)
        self.fetches_s.append(fetched - asked)
        if batches.epochs > epochs:
            self.restarts_s.append(fetched - asked)

    def restart_s(self, facts: LoaderFacts, per_epoch: int) -> float:
        """Return the seconds of a step in which workers started anew for an epoch."""
        # unless each worker makes several batches an epoch, the usual wait is not known
        usual_is_known = 0 < 2 * facts.workers <= per_epoch
        if not self.restarts_s or facts.persistent or not usual_is_known:
            return 0.0
        count, restarts = len(self.steps_s), len(self.restarts_s)
        usual_s = (sum(self.fetches_s) - sum(self.restarts_s)) / max(count - restarts, 1)
        # to load a first batch
        first_s = facts.workers * (usual_s + statistics.mean(self.steps_s))
        return max(0.0, sum(self.restarts_s) - restarts * first_s) / count


def _time_steps(
    step: Callable[[Any], object],
    batches: "_Batches",
    device: Device,
    steps: int,
    max_s: float,
    clock: Callable[[], float],
    facts: LoaderFacts,
) -> tuple[LoopRecord, float, float]:
    """Time steps of the loop without the profiler. Return also the mean seconds of a step in which
    this thread was on a core, and in which it neither was nor queued for one.
    """
    times, workers = _StepTimes(), _WorkerWatch()
    wait_for(device)
    start = clock()
    while len(times.steps_s) < steps and (len(times.steps_s) < WARM_UP or clock() - start < max_s):
        times.take(step, batches, clock)
        if facts.workers:
            workers.look()
    wait_for(device)
    count = len(times.steps_s)
    mean_s = (clock() - start) / count
    fetch_s = statistics.mean(times.fetches_s)  # workers deliver in bursts, so the mean counts
    waits: bool | None = _sleeps(sum(times.fetches_s) - times.awake_s, times.fetching_s)
    receives = facts.workers > 0 and not waits
    if facts.workers:
        workers.look(at_once=True)
        waits = workers.wait
    timing = LoopRecord(
        device=str(device),
        kind=device.kind,
        step_s=fetch_s + min(times.steps_s) if device.kind == "cpu" else mean_s,
        fetch_s=fetch_s,
        loader=replace(
            facts,
            waits=waits,
            own_s=None if facts.workers else times.fetching_s / count,
            receives=receives,
            restart_s=times.restart_s(facts, batches.per_epoch),
        ),
    )
    return timing, times.on_core_s / count, times.asleep_s / count


def _sleeps(asleep_s: float, on_core_s: float) -> bool:
    return asleep_s > ASLEEP * (asleep_s + on_core_s)


def _awake_s() -> float:
    """Return how long this thread has been on a core or, where Linux says so, waiting for one."""
    return time.thread_time() + (_schedstat("/proc/thread-self") or (0.0, 0.0))[1]


def _schedstat(folder: str) -> tuple[float, float] | None:
    """Return the seconds on a core and waiting for one of a thread, by its folder under /proc;
    None where Linux does not say so.
    """
    try:
        with open(f"{folder}/schedstat") as file:
            on_core_ns, queued_ns = file.read().split()[:2]
            return 1e-9 * int(on_core_ns), 1e-9 * int(queued_ns)
    except (OSError, IndexError, ValueError):
        return None


class _WorkerWatch:
    """Watches whether the workers of a loader sleep or compute: starved by other programs, they
    wait for a core and for nothing else.
    """

    def __init__(self) -> None:
        self._last: dict[int, tuple[float, float]] = {}  # by process, on a core and queueing
        self._then = time.perf_counter()
        self._on_core_s = self._queued_s = self._alive_s = 0.0
        self.look(at_once=True)

    def look(self, at_once: bool = False) -> None:
        """Add up what has passed since the last look, unless that was just now."""
        now = time.perf_counter()
        if now - self._then < LOOK_S and not at_once:
            return
        found = {}
        for child in multiprocessing.active_children():
            threads = _threads(child.pid) if child.daemon else []
            times = [seen for seen in map(_schedstat, threads) if seen]
            if times and child.pid:
                found[child.pid] = (sum(one[0] for one in times), sum(one[1] for one in times))
        for process in found.keys() & self._last.keys():
            self._on_core_s += found[process][0] - self._last[process][0]
            self._queued_s += found[process][1] - self._last[process][1]
            self._alive_s += now - self._then
        self._last, self._then = found, now

    @property
    def wait(self) -> bool | None:
        """Whether the workers sleep for most of the time; None if nothing was seen of them, or if
        other programs kept them from the cores for most of it: the kernel counts that late.
        """
        if self._queued_s >= 0.5 * self._alive_s:
            return None
        asleep_s = max(0.0, self._alive_s - self._on_core_s - self._queued_s)
        return _sleeps(asleep_s, self._on_core_s)


def _threads(process: int | None) -> list[str]:
    try:
        return [f"/proc/{process}/task/{thread}" for thread in os.listdir(f"/proc/{process}/task")]
    except OSError:
        return []


def _run_smallest() -> None:
    """Run additions of two numbers, which cost nothing but their call."""
    one = torch.ones(())
    with record_function(SMALLEST):
        for _ in range(200):
            torch.add(one, one)


class _Batches:
    """The batches of a loader, epoch after epoch."""

    def __init__(self, loader: Iterable[Any]):
        self.epochs = 0  #: that have begun
        self.per_epoch = 0  #: batches of the last whole epoch
        self._yielded = 0
        self._loader = loader
        self._batches: Iterator[Any] = iter(())

    def __next__(self) -> Any:
        batch = next(self._batches, END)
        if batch is END:
            self.epochs += 1
            self.per_epoch, self._yielded = self._yielded, 0
            self._batches = iter(self._loader)
            batch = next(self._batches, END)
        if batch is END:
            raise ValueError(
                "the loader yields no batch, or ended early and cannot be started again, as a "
                "generator cannot. Pass a DataLoader or a list of batches."
            )
        self._yielded += 1
        return batch

    def close(self) -> None:
        """Let go of the workers."""
        self._batches = iter(())
