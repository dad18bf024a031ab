"""Loops whose bottleneck was built in, run here."""

import multiprocessing
import subprocess
import sys
import time
from collections import UserDict
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import pytest
import torch
from start_python import python
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from course_tools.timeline import run_loop
from course_tools.timeline.bottleneck import find_bottleneck, judge
from course_tools.timeline.loop_record import LoaderFacts, LoopRecord
from course_tools.timeline.run_loop import facts_of, record_loop
from course_utils.devices import Device, as_device


class SlowImages(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        time.sleep(0.01)
        return torch.ones(10)


class BusyImages(SlowImages):
    def __getitem__(self, index):
        end = time.thread_time() + 0.01
        while time.thread_time() < end:
            pass
        return torch.ones(10)


def test_what_a_fused_optimizer_reads_of_its_own_is_no_read_of_the_loop():
    """On a CPU, `_fused_adam_` calls `aten::item` for the count of steps of each parameter."""
    network = torch.nn.Linear(8, 8)
    optimizer = torch.optim.Adam(network.parameters(), fused=True)

    def step(batch):
        optimizer.zero_grad()
        network(batch).sum().backward()
        optimizer.step()

    def step_that_reads(batch):
        step(batch)
        return float(batch.sum())

    batches, settings = [torch.ones(4, 8)], {"steps": 20, "max_s": 5.0, "device": as_device("cpu")}
    assert record_loop(step, batches, **settings).reads == 0
    assert record_loop(step_that_reads, batches, **settings).reads == 1


def test_a_loader_that_computes_is_said_to_need_cores():
    found = find_bottleneck(lambda batch: batch + 1, DataLoader(BusyImages(), 4), device="cpu")
    assert found.limit == "loader" and "loading waits" not in found.advice


@pytest.mark.process
@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_that_sleeps_is_the_bottleneck_and_said_to_wait(workers):
    loader = DataLoader(SlowImages(), 4, num_workers=workers)
    found = find_bottleneck(lambda batch: batch + 1, loader, device="cpu", steps=5)
    assert found.limit == "loader" and found.workers_to_try > 1
    assert "loading waits" in found.advice


@pytest.mark.process
def test_workers_that_compute_but_are_starved_do_not_count_as_waiting():
    # a program on every core and one more: each worker gets at most a part of a core
    programs = multiprocessing.cpu_count() + 1
    started = [subprocess.Popen([sys.executable, "-c", "while 1: pass"]) for _ in range(programs)]
    try:
        loader = DataLoader(BusyImages(), 4, num_workers=2)
        found = find_bottleneck(lambda batch: batch + 1, loader, device="cpu", steps=5)
    finally:
        for program in started:
            program.kill()
            program.wait()
    assert found.limit == "loader" and "loading waits" not in found.advice


class SlowToOpen(SlowImages):
    opened = False

    def __getitem__(self, index):
        if not self.opened:
            time.sleep(0.3)
            self.opened = True
        return torch.ones(10)


@pytest.mark.process
@pytest.mark.parametrize("persistent", [False, True])
def test_workers_that_start_anew_for_short_epochs_are_told_to_stay(persistent):
    loader = DataLoader(SlowToOpen(), 16, num_workers=1, persistent_workers=persistent)
    found = find_bottleneck(lambda batch: batch + 1, loader, device="cpu", steps=10)
    assert ("persistent_workers=True" in found.advice) != persistent


@pytest.mark.parametrize(
    ("workers", "persistent", "restart_s"),
    # Each start costs 40 s more than another batch. The first batch of w workers takes w steps of
    # 1 + 3 s anyway: (2 * 41 - 2 * 4 w) / 8 of each step. With three workers no epoch of four
    # batches shows what a usual wait is.
    [(0, False, 0.0), (1, False, 9.25), (2, False, 8.25), (3, False, 0.0), (1, True, 0.0)],
)
@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_the_seconds_of_a_step_are_those_of_the_clock(
    kind, workers, persistent, restart_s, monkeypatch
):
    now = [0.0]

    def passes(seconds):
        now[0] += seconds

    class Epoch:
        def __iter__(self):
            passes(40)
            for batch in range(4):
                passes(1)
                yield batch

    waits = iter([100, 8])  # before the first step, and until the device has done the last
    monkeypatch.setattr(run_loop, "wait_for", lambda device: passes(next(waits)))
    monkeypatch.setattr(run_loop, "_awake_s", lambda: now[0] / 3)  # a third of the time
    facts = LoaderFacts(workers=workers, persistent=persistent)
    batches, device = run_loop._Batches(Epoch()), Device(kind, 0, "a device")
    step, clock = (lambda batch: passes(3)), (lambda: now[0])
    seen, _, asleep_s = run_loop._time_steps(step, batches, device, 8, 1e9, clock, facts)
    fetch_s = (2 * 41 + 6 * 1) / 8
    assert (seen.fetch_s, seen.loader.restart_s) == (fetch_s, restart_s)
    # on a CPU the least disturbed step, elsewhere the mean with what was still queued
    assert seen.step_s == fetch_s + 3 + (0 if kind == "cpu" else 8 / 8)
    assert asleep_s == pytest.approx(2) and next(waits, None) is None


def test_the_batches_of_each_epoch_are_counted_and_the_last_loader_is_let_go():
    ended = []

    class Epoch:
        def __iter__(self):
            try:
                yield from range(3)
            finally:
                ended.append(True)

    batches = run_loop._Batches(Epoch())
    assert [next(batches) for _ in range(8)] == [0, 1, 2, 0, 1, 2, 0, 1]
    assert (batches.epochs, batches.per_epoch, len(ended)) == (3, 3, 2)
    batches.close()
    assert len(ended) == 3


@pytest.mark.parametrize(("max_s", "timed"), [(0, run_loop.WARM_UP), (6.5, 7), (99, 8)])
def test_no_step_begins_after_the_time_is_over_but_a_few_are_timed_anyway(max_s, timed):
    taken, device = [], as_device("cpu")
    batches = run_loop._Batches([0, 1, 2])
    clock = lambda: float(len(taken))  # noqa: E731, a step takes a second
    run_loop._time_steps(taken.append, batches, device, 8, max_s, clock, LoaderFacts())
    assert taken == [number % 3 for number in range(timed)]


@pytest.mark.parametrize(("workers", "lead_in"), [(0, 3), (2, 7)])
def test_steps_are_warm_before_they_are_timed_and_before_they_are_profiled(
    workers, lead_in, monkeypatch
):
    taken = []
    monkeypatch.setattr(run_loop, "facts_of", lambda loader: LoaderFacts(workers=workers))
    record_loop(taken.append, [0], as_device("cpu"), steps=4, max_s=30.0)
    assert len(taken) == lead_in + 4 + lead_in + 10


@pytest.mark.parametrize(
    ("asleep_s", "python_s", "lost_s"), [(1e-3, 2e-3, 4e-3), (3e-3, 2e-3, 3e-3), (9e-3, 9e-3, 0)]
)
def test_what_is_left_of_a_step_on_a_cpu_other_programs_took(
    asleep_s, python_s, lost_s, monkeypatch
):
    timing = LoopRecord("cpu", "cpu", step_s=10e-3, fetch_s=1e-3)
    monkeypatch.setattr(run_loop, "_time_steps", lambda *_: (timing, 4e-3, asleep_s))
    monkeypatch.setattr(run_loop, "read_loop", lambda timing, _: replace(timing, python_s=python_s))
    found = record_loop(torch.neg, [torch.ones(1)], as_device("cpu"), steps=1, max_s=1.0)
    assert found.lost_s == pytest.approx(lost_s)


def test_a_program_without_a_file_is_a_notebook(monkeypatch):
    for name, in_notebook in (("a script", False), ("a notebook", True)):
        program = ModuleType("__main__")
        if not in_notebook:
            program.__file__ = name
        monkeypatch.setitem(sys.modules, "__main__", program)
        assert run_loop.facts_of([0]).in_notebook == in_notebook
    assert facts_of(DataLoader([0])).is_dataloader and not facts_of([0]).is_dataloader


@pytest.mark.parametrize(
    ("on_core_s", "queued_s", "waits"),
    [(0.5, 5.1, None), (0.5, 2.8, True), (4.0, 1.5, False), (0.0, 0.0, True)],
)
def test_of_workers_that_others_keep_from_the_cores_it_is_not_known_whether_they_wait(
    on_core_s, queued_s, waits
):
    watch = run_loop._WorkerWatch()
    assert watch.wait is None  # it has seen none
    watch._alive_s, watch._on_core_s, watch._queued_s = 5.8, on_core_s, queued_s
    assert watch.wait is waits


def test_a_loader_waits_if_it_sleeps_for_more_than_half_of_its_time():
    assert run_loop._sleeps(0.51, 0.49) and not run_loop._sleeps(0.49, 0.51)


CELL = """
import torch
from torch.utils.data import DataLoader, Dataset

from course_tools.timeline.bottleneck import find_bottleneck

class Digits(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return torch.zeros(8)

loader = DataLoader(Digits(), batch_size=8, num_workers=2, multiprocessing_context="spawn")
try:
    find_bottleneck(torch.sum, loader, device="cpu")
except RuntimeError as error:
    print(error)
"""


@pytest.mark.process
def test_workers_that_do_not_find_the_class_of_a_cell_are_an_error_that_says_the_cure():
    # a program of -c has no file, as the cells of a notebook have none
    done = python("-c", CELL)
    assert "Can't get attribute 'Digits' on <module '__main__'" in done.stderr
    assert "%%writefile" in done.stdout and "num_workers=0" in done.stdout


# the clock of this thread alone, in which other programs take no part
CALM = {"device": as_device("cpu"), "steps": 20, "max_s": 30.0, "clock": time.thread_time}


def test_many_tiny_operations_are_held_back_by_their_calls():
    def step(batch):
        for _ in range(500):
            batch = batch.neg()

    found = judge(record_loop(step, [torch.ones(2)], **CALM))
    assert (found.limit, found.operations) == ("launches", 500)


def test_a_large_product_is_held_back_by_its_arithmetic():
    found = judge(record_loop(lambda batch: batch @ batch, [torch.ones(600, 600)], **CALM))
    assert (found.limit, found.operations) == ("arithmetic", 1)


class Rows(torch.utils.data.Dataset):
    rows = torch.ones(4096, 10)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


def test_rows_of_a_tensor_in_a_dataset_of_ones_own_get_whole_batches_and_no_workers():
    loader = DataLoader(Rows(), 512, shuffle=True)  # milliseconds, beside which a pause is short
    found = find_bottleneck(lambda batch: batch + 1, loader, device="cpu")
    assert found.limit == "loader" and found.workers_to_try is None
    assert "sampler=BatchSampler(RandomSampler(dataset), 512, drop_last=False)" in found.advice


@pytest.mark.parametrize("dataset", [Rows(), TensorDataset(Rows.rows)])
def test_whole_batches_in_memory_get_no_workers_either(dataset):
    batches = BatchSampler(RandomSampler(dataset), 512, drop_last=False)
    loader = DataLoader(dataset, batch_size=None, sampler=batches)
    found = find_bottleneck(lambda batch: batch, loader, device="cpu")
    assert found.limit == "loader" and found.workers_to_try is None
    assert "num_workers" not in found.advice


@pytest.mark.parametrize(("share", "receives"), [(0.9, True), (0.1, False)])
def test_a_loop_that_does_not_sleep_while_it_waits_takes_in_what_workers_send(
    share, receives, monkeypatch
):
    now = [0.0]

    def passes(batch=None):
        now[0] += 1
        return batch

    monkeypatch.setattr(run_loop, "_awake_s", lambda: now[0] * share)
    monkeypatch.setattr(time, "thread_time", lambda: now[0] * share)
    batches, facts = run_loop._Batches(map(passes, range(9))), LoaderFacts(workers=1)
    clock = lambda: now[0]  # noqa: E731
    seen, *_ = run_loop._time_steps(passes, batches, as_device("cpu"), 8, 99, clock, facts)
    assert seen.loader.receives == receives


def test_the_bytes_of_a_batch_are_those_of_its_tensors():
    batch = UserDict(ids=torch.ones(2, 3), rest=[(torch.ones(4, dtype=torch.uint8), "name"), 7])
    assert run_loop._bytes_of(batch) == 4 * 6 + 4


def compute_in_python():
    end = time.thread_time() + 0.01
    while time.thread_time() < end:
        pass


@pytest.mark.parametrize("beside", [compute_in_python, lambda: time.sleep(0.01)])
def test_what_the_step_does_beside_pytorch_is_a_part_of_its_own(beside):
    def step(batch):
        (batch @ batch).sum()
        beside()

    for _ in range(3):  # no verdict where other programs had the core, so ask again
        found = find_bottleneck(step, [torch.ones(8, 8)], device="cpu")
        if found.limit:
            break
    assert found.limit == "own Python" and found.share("own Python") > 0.5
    assert "a larger batch" not in found.advice and "compile" not in found.advice


PAIR = [(torch.ones(2), torch.ones(2))]


@pytest.mark.parametrize(
    ("step", "loader", "steps", "words"),
    [
        (torch.neg, (torch.ones(2) for _ in range(4)), 9, "Pass a DataLoader"),
        (torch.neg, PAIR, 0, r"^steps is 0, but at least one step has to be timed\.$"),
        (lambda x, y: x, PAIR, 9, r"of the loader \(here a tuple of 2\), but step takes \(x, y\)"),
        (torch.nn, PAIR, 9, "but got module. Let torch.profiler record the loop of a Trainer"),
    ],
)
def test_a_loop_that_cannot_be_run_is_refused_in_words(step, loader, steps, words):
    with pytest.raises((TypeError, ValueError), match=words):
        find_bottleneck(step, loader, device="cpu", steps=steps)


START = """
import multiprocessing, torch
from torch.utils.data import DataLoader
from course_tools.timeline.bottleneck import find_bottleneck
find_bottleneck(torch.sum, DataLoader(torch.ones(8, 8), 2), device="cpu", steps=3)
multiprocessing.set_start_method("spawn")
"""


@pytest.mark.process
def test_the_start_method_of_processes_is_left_to_the_program():
    done = python("-c", START)
    assert done.returncode == 0, done.stderr


def test_the_start_method_is_that_of_the_loader_or_the_default_of_the_system():
    spawned = DataLoader(SlowImages(), num_workers=1, multiprocessing_context="spawn")
    assert facts_of(spawned).spawned
    # asked so that the program can still choose one
    unsettled = SimpleNamespace(get_start_method=lambda allow_none: None if allow_none else "spawn")
    default = multiprocessing.get_all_start_methods()[0]
    assert run_loop._start_method(SimpleNamespace(multiprocessing_context=unsettled)) == default
    assert facts_of(DataLoader(SlowImages())).spawned == (default != "fork")


def test_a_dataset_that_fetches_a_batch_at_once_needs_no_advice_on_single_samples():
    class Whole(SlowImages):
        def __getitems__(self, numbers):
            return [torch.ones(10) for _ in numbers]

    assert facts_of(DataLoader(Whole(), 4)).batch == 0
    assert facts_of(DataLoader(SlowImages(), 4)).batch == 4


def test_a_sampler_of_ones_own_stays_in_the_advice():
    sampler = torch.utils.data.WeightedRandomSampler(torch.ones(8), 8)
    facts = facts_of(DataLoader(SlowImages(), 4, sampler=sampler, drop_last=True))
    assert (facts.batch, facts.sampler, facts.drop_last) == (4, "sampler", True)
