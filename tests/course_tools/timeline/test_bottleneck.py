"""Loops whose bottleneck was built in, and verdicts on spans that were made by hand."""

import time
from dataclasses import replace

import pytest
import torch
from torch.utils.data import DataLoader

from course_tools.timeline.bottleneck import (
    FETCH,
    PARTS,
    STEP,
    LoopRecord,
    add_spans,
    find_bottleneck,
    judge,
    record_loop,
)
from course_tools.timeline.lanes import Span
from course_utils.devices import as_device


def every_ms(start_ms, length_ms, period_ms=10, times=4):
    """Return spans that start again after each period."""
    starts = [start_ms + period_ms * number for number in range(times)]
    return tuple(Span("work", start / 1e3, (start + length_ms) / 1e3) for start in starts)


# four steps of 10 ms on a GPU: 1 ms is spent on the batch, and the device computes for 1 ms
SEEN = LoopRecord(
    device="cuda:0",
    kind="cuda",
    step_s=10e-3,
    fetch_s=1e-3,
    workers=0,
    cores=8,
    steps=4,
    fetches=every_ms(0, 1),
    work=every_ms(9, 1),
    copies=every_ms(1, 0.5),
    operations=400,
)


def in_ms(found):
    return [round(1e3 * found.parts_s[part], 3) for part in PARTS]


@pytest.mark.parametrize(
    ("changes", "limit", "parts_ms"),
    [
        ({}, "launches", [1, 0.5, 7.5, 1]),
        ({"work": every_ms(2, 8)}, "arithmetic", [1, 0.5, 0.5, 8]),
        ({"copies": every_ms(1, 7)}, "copies", [1, 7, 1, 1]),
        ({"fetches": every_ms(0, 7), "fetch_s": 7e-3}, "loader", [6.5, 0.5, 2, 1]),
        # a copy while the device computes, and a batch that is fetched meanwhile, cost nothing
        ({"work": every_ms(0, 9), "copies": every_ms(1, 7)}, "arithmetic", [0, 0, 1, 9]),
        # the host's calls took twice as long under the profiler, and the device as long as before
        ({"step_s": 5e-3, "fetch_s": 0.5e-3}, "launches", [0.5, 0.5, 3, 1]),
    ],
)
def test_each_part_of_a_step_on_a_gpu_can_be_the_one_that_limits(changes, limit, parts_ms):
    found = judge(replace(SEEN, **changes))
    assert (found.limit, in_ms(found), found.operations) == (limit, parts_ms, 100)
    assert sum(map(found.share, PARTS)) == pytest.approx(1)


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({}, "torch.compile"),
        ({"reads": 4}, "once an epoch"),
        ({"copies": every_ms(1, 7)}, "pin_memory=True"),
        ({"work": every_ms(2, 8)}, "autocast"),
        ({"work": every_ms(2, 8), "kind": "cpu"}, "a GPU"),
    ],
)
def test_the_advice_fits_what_limits(changes, advice):
    assert advice in judge(replace(SEEN, **changes)).advice


@pytest.mark.parametrize(
    ("workers", "step_s", "fetch_s", "cores", "to_try"),
    [
        (0, 0.050, 0.040, 8, 4),  # 40 ms for a batch, 10 ms for the rest
        (2, 0.025, 0.015, 8, 5),  # two workers give one each 25 ms, so each needs 50 ms
        (0, 0.050, 0.040, 4, 4),
        (0, 0.050, 0.040, 2, 4),
        (2, 0.025, 0.015, 2, 5),
        # one loop, asked without workers and with two: the rest of the step is short, and seems
        # to be 6.1 ms or 3.4 ms, which makes 12 or 20 workers; four for each core are the limit
        (0, 0.0771, 0.0710, 2, 8),
        (2, 0.0336, 0.0302, 2, 8),
    ],
)
def test_so_many_workers_are_advised_that_they_keep_up_with_the_step_but_few_for_each_core(
    workers, step_s, fetch_s, cores, to_try
):
    waits = every_ms(0, 1e3 * fetch_s, 1e3 * step_s)
    loop = {"step_s": step_s, "fetch_s": fetch_s, "fetches": waits, "copies": (), "work": ()}
    found = judge(replace(SEEN, workers=workers, cores=cores, **loop))
    assert (found.limit, found.workers_to_try) == ("loader", to_try)
    assert f"num_workers={to_try}" in found.advice
    assert (f"this machine has {cores}:" in found.advice) == (cores < to_try)
    assert ("prepare the data once" in found.advice) == (cores < to_try)


def test_a_loop_that_has_enough_workers_for_its_cores_is_not_advised_to_start_more():
    loop = {"fetch_s": 9e-3, "fetches": every_ms(0, 9), "copies": ()}
    found = judge(replace(SEEN, workers=8, cores=2, **loop))
    assert (found.limit, found.workers_to_try) == ("loader", None)
    assert "num_workers" not in found.advice and "prepare the data once" in found.advice


def test_two_parts_of_one_length_are_no_verdict():
    found = judge(replace(SEEN, work=every_ms(5, 4.5)))
    assert found.limit is None and "arithmetic and the launches" in repr(found)


def test_a_device_that_the_profiler_does_not_see_is_no_verdict_unless_the_loader_limits():
    unseen = replace(SEEN, device="mps:0", kind="mps", work=(), copies=())
    assert judge(unseen).limit is None and "saw no work on mps:0" in judge(unseen).doubt
    slow = replace(unseen, fetch_s=9e-3, fetches=every_ms(0, 9))
    assert judge(slow).limit == "loader"


def test_the_result_reads_as_a_sentence_and_as_a_table():
    found = judge(SEEN)
    assert repr(found).startswith("Launches limit this loop: of 10 ms a step on cuda:0, loader 10%")
    assert "75%" in found._repr_html_() and found.to_frame()["share"]["launches"] == 0.75


def event(name, start, duration, category, tid=7):
    times = {"ts": 1e3 * start, "dur": 1e3 * duration}
    return {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": tid, **times}


def test_kernels_copies_and_reads_of_the_last_steps_are_found_in_a_trace():
    events = []
    for begin in (0, 10, 20):
        events += [
            event(FETCH, begin, 1, "user_annotation"),
            event(STEP, begin + 1, 8, "user_annotation"),
            event("aten::_local_scalar_dense", begin + 7, 2, "cpu_op"),
            event("Memcpy HtoD (Pinned -> Device)", begin + 2, 1, "gpu_memcpy", tid=20),
            event("Memcpy DtoD (Device -> Device)", begin + 3, 1, "gpu_memcpy", tid=20),
            event("ampere_sgemm_128x64_nn", begin + 4, 3, "kernel", tid=20),
        ]
    found = add_spans(replace(SEEN, steps=2), events)
    assert [round(span.start_s, 6) for span in found.fetches] == [0.010, 0.020]
    assert (len(found.work), len(found.copies), found.reads) == (4, 2, 2)
    assert in_ms(judge(found)) == [1, 1, 4, 4]


class SlowImages(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        time.sleep(0.01)
        return torch.ones(10)


def test_a_loader_that_sleeps_limits_the_loop():
    found = find_bottleneck(lambda batch: batch + 1, DataLoader(SlowImages(), 4), device="cpu")
    assert found.limit == "loader" and found.workers_to_try > 1


@pytest.mark.process
def test_one_worker_that_sleeps_still_limits_the_loop():
    loader = DataLoader(SlowImages(), 4, num_workers=1)
    found = find_bottleneck(lambda batch: batch + 1, loader, device="cpu", steps=5)
    assert found.limit == "loader" and found.workers_to_try > 1


# the clock of this thread alone, in which other programs take no part
CALM = {"device": as_device("cpu"), "steps": 20, "max_s": 30.0, "clock": time.thread_time}


def test_many_tiny_operations_limit_by_their_calls():
    def step(batch):
        for _ in range(500):
            batch = batch.neg()

    found = judge(record_loop(step, [torch.ones(2)], **CALM))
    assert (found.limit, found.operations) == ("launches", 500)


def test_a_large_product_limits_by_its_arithmetic():
    found = judge(record_loop(lambda batch: batch @ batch, [torch.ones(600, 600)], **CALM))
    assert (found.limit, found.operations) == ("arithmetic", 1)


def test_a_loader_that_cannot_be_started_again_is_an_error():
    batches = (torch.ones(2) for _ in range(4))
    with pytest.raises(ValueError, match="Pass a DataLoader"):
        find_bottleneck(torch.neg, batches, device="cpu")


def test_a_loop_that_other_programs_disturbed_is_no_verdict_unless_the_loader_limits():
    disturbed = replace(SEEN, kind="cpu", device="cpu", disturbed=True)
    found = judge(disturbed)
    assert found.limit is None and "Other programs had the core" in repr(found)
    slow = judge(replace(disturbed, fetch_s=9e-3, fetches=every_ms(0, 9), copies=()))
    assert slow.limit == "loader"
