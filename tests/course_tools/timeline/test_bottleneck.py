"""Loops whose bottleneck was built in, verdicts on evidence made by hand, and recorded GPUs."""

import doctest
import re
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch
from course_lessons.recordings import load
from start_python import python
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, Subset, TensorDataset

from course_tools.timeline import bottleneck
from course_tools.timeline.bottleneck import PARTS, bottleneck_of, find_bottleneck, judge
from course_tools.timeline.loop import (
    FETCH,
    STEP,
    LoaderFacts,
    LoopRecord,
    facts_of,
    read_loop,
    record_loop,
)
from course_utils.devices import as_device

# a step of 10 ms on a GPU: 1 ms is spent on the batch, and the device computes for 1 ms
SEEN = LoopRecord(
    device="cuda:0",
    kind="cuda",
    step_s=10e-3,
    fetch_s=1e-3,
    compute_s=1e-3,
    copies_s=0.5e-3,
    operations=100,
    loader=LoaderFacts(cores=8, waits=False),
)
LOADER = {"fetch_s": 7e-3}


def in_ms(found):
    return [round(1e3 * found.parts_s[part], 3) for part in PARTS]


@pytest.mark.parametrize(
    ("changes", "limit", "parts_ms"),
    [
        ({}, "launches", [1, 0.5, 0, 7.5, 1]),
        ({"compute_s": 8e-3}, "arithmetic", [1, 0.5, 0, 0.5, 8]),
        ({"copies_s": 7e-3}, "copies", [1, 7, 0, 1, 1]),
        ({"exchange_s": 6e-3}, "other ranks", [1, 0.5, 6, 1.5, 1]),
        (LOADER, "loader", [7, 0.5, 0, 1.5, 1]),
        # the device worked for nearly the whole time in which the loop waited for its batch
        ({**LOADER, "exposed": 0.1, "compute_s": 8e-3}, "arithmetic", [0.7, 0.5, 0, 0.8, 8]),
        # the profiled steps were slower than the others
        ({"step_s": 8e-3, "compute_s": 14.5e-3}, "arithmetic", [0.5, 0.25, 0, 0, 7.25]),
    ],
)
def test_each_part_of_a_step_on_a_gpu_can_be_the_bottleneck(changes, limit, parts_ms):
    found = judge(replace(SEEN, **changes))
    assert (found.limit, in_ms(found)) == (limit, parts_ms)
    assert sum(map(found.share, PARTS)) == pytest.approx(1)


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({}, "reduce-overhead"),
        ({"kind": "cpu"}, "merges elementwise operations"),
        ({"reads": 1.0}, "once per epoch"),
        ({"copies_s": 7e-3}, "pin_memory=True"),
        ({"exchange_s": 6e-3}, "wait for the slowest"),
        ({"compute_s": 8e-3}, "autocast"),
        ({"compute_s": 8e-3, "kind": "cpu"}, "a GPU"),
    ],
)
def test_the_advice_fits_the_bottleneck(changes, advice):
    assert advice in judge(replace(SEEN, **changes)).advice


def test_before_the_arithmetic_is_made_cheaper_a_part_that_costs_much_is_removed():
    found = judge(replace(SEEN, compute_s=6e-3, fetch_s=3e-3))
    assert found.limit == "arithmetic"
    assert found.advice.startswith("against the loader (30% of the step): DataLoader(")
    assert found.advice.index("num_workers") < found.advice.index("autocast")


@pytest.mark.parametrize(
    ("workers", "step_s", "fetch_s", "cores", "to_try"),
    [
        (0, 0.050, 0.040, 8, 4),  # 40 ms for a batch, 10 ms for the rest
        (2, 0.025, 0.015, 8, 5),  # two workers give one each 25 ms, so each needs 50 ms
        (0, 0.050, 0.040, 4, 4),
        # one loop, asked without workers and with two: the rest of the step is short, and seems
        # to be 6.1 ms or 3.4 ms, which makes 12 or 20 workers; four for each core are the limit
        (0, 0.0771, 0.0710, 2, 8),
        (2, 0.0336, 0.0302, 2, 8),
    ],
)
def test_a_loader_that_waits_gets_workers_that_keep_up_but_few_per_core(
    workers, step_s, fetch_s, cores, to_try
):
    facts = LoaderFacts(workers=workers, cores=cores, waits=True)
    seen = LoopRecord("cuda:0", "cuda", step_s, fetch_s, loader=facts)
    found = judge(seen)
    assert (found.limit, found.workers_to_try) == ("loader", to_try)
    assert f"num_workers={to_try}); loading waits" in found.advice


@pytest.mark.parametrize(("workers", "to_try"), [(0, 2), (1, 2), (2, None), (8, None)])
def test_a_loader_that_computes_gets_no_more_workers_than_cores(workers, to_try):
    facts = LoaderFacts(workers=workers, cores=2, waits=False)
    found = judge(replace(SEEN, fetch_s=9e-3, copies_s=0.0, loader=facts))
    assert (found.limit, found.workers_to_try) == ("loader", to_try)
    assert "prepare the data once" in found.advice
    assert ("num_workers" in found.advice) == (to_try is not None)


@pytest.mark.parametrize("waits", [True, False, None])
def test_advice_has_no_condition_that_the_reader_has_to_find_out(waits):
    for workers in (0, 2, 64):
        facts = LoaderFacts(workers=workers, cores=2, waits=waits)
        advice = judge(replace(SEEN, fetch_s=9e-3, copies_s=0.0, loader=facts)).advice
        assert not re.search(r"\bif\b", advice)


def test_two_parts_of_one_length_are_no_verdict_and_no_advice():
    found = judge(replace(SEEN, compute_s=4.5e-3))
    assert found.limit is None and "arithmetic and the launches" in repr(found)
    assert not found.advice and "Try first" not in repr(found)


def test_a_device_that_the_profiler_does_not_see_is_no_verdict_unless_the_loader_is_slow():
    unseen = replace(SEEN, device="mps:0", kind="mps", compute_s=0.0, copies_s=0.0, visible=False)
    assert judge(unseen).limit is None and "saw no work on mps:0" in judge(unseen).doubt
    assert judge(replace(unseen, fetch_s=9e-3)).limit == "loader"


def test_idle_time_with_work_in_the_queue_is_not_called_launches():
    found = judge(replace(SEEN, queued_s=6e-3))
    assert found.limit is None and "another rank" in found.doubt and not found.advice


# What scripts apart read from the whole traces, in milliseconds: the loader's wait that the device
# did not fill, copies, exchange and work, one after the other.
@pytest.mark.parametrize(
    ("name", "limit", "parts_ms"),
    [
        ("resnet50_no_worker", "arithmetic", [32.4, 1.65, 0, None, 98.1]),
        ("resnet50_four_workers", "arithmetic", [0.0, 2.9, 0, None, 98.6]),
        ("resnet50_v100", "arithmetic", [0, 0, 0, None, 94.4]),
        ("resnet50_two_a100", "launches", [0, 0, 10.4, 170.0, 39.3]),
        ("eight_a100", "arithmetic", [0.1, 3.67, 14.5, None, 47.9]),
        ("sixteen_a100", None, [0, 3.67, 36.2, None, 40.4]),
        ("tiny_mi250", "launches", [0, 0.04, 0, 9.2, 0.1]),
    ],
)
def test_the_parts_of_a_recorded_step_are_those_of_the_whole_trace(name, limit, parts_ms):
    found = bottleneck_of(load(name).trace)
    assert found.limit == limit
    for part, expected_ms in zip(PARTS, parts_ms, strict=True):
        if expected_ms is not None:
            assert 1e3 * found.parts_s[part] == pytest.approx(expected_ms, abs=0.15), part


def test_four_workers_take_the_loader_out_of_a_recorded_step():
    without, four = (
        bottleneck_of(load(name).trace) for name in ("resnet50_no_worker", "resnet50_four_workers")
    )
    assert without.share("loader") > 0.2 and "num_workers" in without.advice
    assert four.share("loader") < 0.01 and "num_workers" not in four.advice


def test_a_recorded_rank_that_waits_for_others_is_advised_to_compare_them():
    found = bottleneck_of(load("eight_a100").trace)
    assert "other ranks 19%" in repr(found)
    assert found.advice.startswith("against the other ranks (19% of the step): compare the ranks")


def test_a_trace_without_steps_is_an_error_that_says_how_to_mark_them():
    with pytest.raises(ValueError, match=r"Call `profiler.step\(\)`"):
        bottleneck_of({"traceEvents": []})


def event(name, start, duration, category, tid=7, number=None):
    times = {"ts": 1e3 * start, "dur": 1e3 * duration}
    args = {"args": {"correlation": number}} if number else {}
    return {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": tid, **times, **args}


def test_kernels_copies_exchanges_and_reads_of_the_last_steps_are_found_in_a_trace():
    events = []
    for begin in range(0, 130, 10):  # the first three are the warm-up
        events += [
            event(FETCH, begin, 1, "user_annotation"),
            event(STEP, begin + 1, 8, "user_annotation"),
            event("aten::_local_scalar_dense", begin + 7, 2, "cpu_op"),
            event("Memcpy HtoD (Pinned -> Device)", begin + 2, 1, "gpu_memcpy", tid=20),
            event("Memcpy DtoD (Device -> Device)", begin + 3, 1, "gpu_memcpy", tid=20),
            event("ampere_sgemm_128x64_nn", begin + 4, 3, "kernel", tid=20),
            event("ncclDevKernel_AllReduce_Sum_f32_RING_LL", begin + 6, 2, "kernel", tid=21),
        ]
    seen = read_loop(SEEN, events)
    assert (seen.operations, seen.reads, seen.visible) == (2, 1, True)
    assert in_ms(judge(seen)) == [1, 1, 1, 3, 4]


@pytest.mark.parametrize(
    ("work_start", "work_ms", "exposed"), [(0.0, 9, 0.0), (0.5, 4, 0.5), (2.0, 4, 1.0)]
)
def test_a_batch_that_is_fetched_while_the_device_works_costs_nothing(work_start, work_ms, exposed):
    events = []
    for begin in range(0, 100, 10):
        events += [
            event(FETCH, begin, 1, "user_annotation"),
            event(STEP, begin + 1, 8, "user_annotation"),
            event("gemm", begin + work_start, work_ms, "kernel", tid=20),
        ]
    assert read_loop(SEEN, events).exposed == pytest.approx(exposed)


def test_a_kernel_that_was_launched_and_did_not_begin_is_told_from_one_that_was_launched_late():
    events = []
    for begin in range(0, 100, 10):
        events += [
            event(FETCH, begin, 1, "user_annotation"),
            event(STEP, begin + 1, 8, "user_annotation"),
            # the first is launched 2 ms after the step's begin and starts at once,
            event("cudaLaunchKernel", begin + 2, 0.5, "cuda_runtime", number=2 * begin + 1),
            event("gemm", begin + 2.5, 1, "kernel", tid=20, number=2 * begin + 1),
            # the second is launched then, too, and starts 3 ms after the first has ended
            event("cudaLaunchKernel", begin + 2.5, 0.5, "cuda_runtime", number=2 * begin + 2),
            event("gemm", begin + 6.5, 1, "kernel", tid=20, number=2 * begin + 2),
        ]
    assert read_loop(SEEN, events).queued_s == pytest.approx(3e-3)


class SlowImages(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        time.sleep(0.01)
        return torch.ones(10)


def test_a_loader_that_sleeps_is_the_bottleneck_and_said_to_wait():
    found = find_bottleneck(lambda batch: batch + 1, DataLoader(SlowImages(), 4), device="cpu")
    assert found.limit == "loader" and found.workers_to_try > 1
    assert "loading waits" in found.advice


class BusyImages(SlowImages):
    def __getitem__(self, index):
        end = time.thread_time() + 0.01
        while time.thread_time() < end:
            pass
        return torch.ones(10)


def test_a_loader_that_computes_is_said_to_need_cores():
    found = find_bottleneck(lambda batch: batch + 1, DataLoader(BusyImages(), 4), device="cpu")
    assert found.limit == "loader" and "loading waits" not in found.advice


@pytest.mark.process
def test_one_worker_that_sleeps_is_still_the_bottleneck_and_still_waits():
    loader = DataLoader(SlowImages(), 4, num_workers=1)
    found = find_bottleneck(lambda batch: batch + 1, loader, device="cpu", steps=5)
    assert found.limit == "loader" and found.workers_to_try > 1
    assert "loading waits" in found.advice


TENSORS = TensorDataset(torch.arange(12.0).reshape(12, 1), torch.arange(12))


@pytest.mark.parametrize("dataset", [TENSORS, Subset(Subset(TENSORS, range(10)), range(8))])
def test_for_tensors_in_memory_the_advice_is_whole_batches_and_it_can_be_run(dataset):
    facts = replace(facts_of(DataLoader(dataset, 4, shuffle=True)), waits=False)
    found = judge(replace(SEEN, fetch_s=9e-3, copies_s=0.0, loader=facts))
    assert found.limit == "loader" and found.workers_to_try is None
    (line,) = re.findall(r"DataLoader\(.*?\)\)(?=\. )", found.advice)
    names = {"DataLoader": DataLoader, "BatchSampler": BatchSampler, "dataset": dataset}
    batches = list(eval(line, {**names, "RandomSampler": RandomSampler}))
    assert [len(x) for x, _ in batches] == [4] * (len(dataset) // 4)
    assert sorted(torch.cat([y for _, y in batches]).tolist()) == list(range(len(dataset)))


@pytest.mark.parametrize(
    ("in_notebook", "words"),
    [(True, "in a .py file that you import, not in a cell"), (False, '__name__ == "__main__"')],
)
def test_advice_to_start_workers_says_what_they_need_where_they_start_anew(in_notebook, words):
    facts = LoaderFacts(cores=8, waits=True, starts_anew=True, in_notebook=in_notebook)
    slow = replace(SEEN, fetch_s=9e-3, copies_s=0.0, loader=facts)
    assert words in judge(slow).advice
    assert words not in judge(replace(slow, loader=replace(facts, starts_anew=False))).advice


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


def test_a_loader_that_cannot_be_started_again_is_an_error():
    batches = (torch.ones(2) for _ in range(4))
    with pytest.raises(ValueError, match="Pass a DataLoader"):
        find_bottleneck(torch.neg, batches, device="cpu")


def test_a_loop_that_other_programs_disturbed_is_no_verdict_unless_the_loader_is_slow():
    disturbed = replace(SEEN, kind="cpu", device="cpu", disturbed=True)
    found = judge(disturbed)
    assert found.limit is None and "Other programs had the core" in repr(found)
    slow = judge(replace(disturbed, fetch_s=9e-3, copies_s=0.0))
    assert slow.limit == "loader"


def test_no_step_at_all_is_an_error_in_one_sentence():
    with pytest.raises(ValueError, match=r"^steps is 0, but at least one step has to be timed\.$"):
        find_bottleneck(torch.neg, [torch.ones(2)], device="cpu", steps=0)


def test_the_example_in_the_docstring_runs():
    assert doctest.testmod(bottleneck).attempted >= 4
    assert doctest.testmod(bottleneck).failed == 0


@pytest.mark.process
def test_it_needs_no_package_that_draws():
    code = "import course_tools.timeline.bottleneck, sys; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False"
