"""What a trace shows of a loop, on events written by hand and on traces of this machine."""

import gzip
import json
import time

import pytest
import torch
from torch.profiler import profile, schedule

from course_tools.timeline.bottleneck import PARTS, bottleneck_of, judge
from course_tools.timeline.loop_record import (
    FETCH,
    SMALLEST,
    STEP,
    LoopRecord,
    read_loop,
    record_of,
)
from course_tools.timeline.trace import read_trace

SEEN = LoopRecord("cuda:0", "cuda", step_s=10e-3, fetch_s=1e-3)


def test_a_trace_without_steps_is_an_error_that_says_how_to_mark_them():
    with pytest.raises(ValueError, match=r"Call `profiler.step\(\)`"):
        bottleneck_of({"traceEvents": []})


@pytest.mark.parametrize("step_ms", [0, 1])
def test_a_trace_whose_only_step_took_no_time_or_called_nothing_is_refused(step_ms):
    # with a schedule of five steps that repeats, the trace of the eleventh has one that is empty
    step = event("ProfilerStep#10", 1, step_ms, "user_annotation")
    fetch = event("enumerate(DataLoader)#", 1, step_ms / 2, "user_annotation")
    call = event("aten::ones", 1, step_ms / 4, "cpu_op")
    with pytest.raises(ValueError, match="record at least one whole step"):
        bottleneck_of({"traceEvents": [step, fetch, call]})


def test_a_recording_that_ends_in_the_middle_of_its_steps_counts_the_whole_ones():
    steps = schedule(wait=2, warmup=1, active=5, repeat=1)
    with profile(schedule=steps, acc_events=True) as profiler:
        for _ in range(6):  # of the five steps to record, three are taken
            torch.ones(100).neg().neg()
            profiler.step()
    found = bottleneck_of(read_trace(profiler))
    assert (found.operations, "0 of the step's calls" in repr(found)) == (3, False)


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, number):
        row = torch.full((10_000,), float(number))
        for _ in range(20):
            row = row.sin()
        return row * row.sum().item()


def test_what_the_loader_computes_is_no_work_of_the_step():
    loader = torch.utils.data.DataLoader(Rows(), 16)
    found = []
    for batches in (loader, list(loader)):
        steps = schedule(wait=1, warmup=1, active=3, repeat=1)
        with profile(schedule=steps, acc_events=True) as profiler:
            for batch in batches:
                (batch @ batch.T).sum()
                profiler.step()
        found.append(bottleneck_of(read_trace(profiler)))
    own, ready = found
    assert own.operations == ready.operations


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
            event("aten::_local_scalar_dense", begin + 0.5, 0.4, "cpu_op"),  # the loader reads
            event("aten::_local_scalar_dense", begin + 7, 2, "cpu_op"),
            # the profiler repeats a block on each stream that works for it
            event(FETCH, begin + 2, 1, "gpu_user_annotation", tid=20),
            event(STEP, begin + 3, 5, "gpu_user_annotation", tid=20),
            event("Memcpy HtoD (Pinned -> Device)", begin + 2, 1, "gpu_memcpy", tid=20),
            event("Memcpy DtoD (Device -> Device)", begin + 3, 1, "gpu_memcpy", tid=20),
            event("ampere_sgemm_128x64_nn", begin + 4, 3, "kernel", tid=20),
            event("ncclDevKernel_AllReduce_Sum_f32_RING_LL", begin + 6, 2, "kernel", tid=21),
        ]
        if begin < 30:
            events.append(event("a kernel that compiles", begin + 8, 1, "kernel", tid=20))
    seen = read_loop(SEEN, events)
    assert (seen.operations, seen.reads, seen.visible) == (2, 1, True)
    # between the fetch and the copy the host is for a millisecond neither in PyTorch nor waiting
    assert [round(1e3 * judge(seen).parts_s[part], 3) for part in PARTS] == [1, 1, 1, 1, 2, 1, 3]


def test_only_what_lies_in_the_marked_steps_of_a_recording_counts():
    loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    events = [
        event("gemm", -9, 3, "kernel", tid=20),
        event(loader, -5, 4, "user_annotation"),
        event("aten::_local_scalar_dense", -4, 1, "cpu_op"),
        event("gemm", 22, 3, "kernel", tid=20),
        event("cudaDeviceSynchronize", 19, 4, "cuda_runtime"),  # that of profiler.stop()
        event("ProfilerStep#2", 20, 1, "user_annotation"),  # and what lies before it
        event("aten::add", 22, 1, "cpu_op"),
    ]
    for number, begin in enumerate((0, 10)):
        events += [
            event(f"ProfilerStep#{number}", begin, 10, "user_annotation"),
            event(loader, begin, 2, "user_annotation"),
            event("aten::nonzero", begin + 1, 1, "cpu_op"),  # of the loader
            event(loader, begin + 1, 5, "gpu_user_annotation", tid=20),
            event(loader, begin + 4, 5, "user_annotation", tid=8),  # in another thread, ahead
            event("gemm", begin + 4, 3, "kernel", tid=20),
            event("vectorized_elementwise_kernel", begin + 7, 1, "kernel", tid=20),
            event("aten::_local_scalar_dense", begin + 8, 1, "cpu_op"),
        ]
    found = record_of({"traceEvents": events})
    assert (found.operations, found.reads, found.fetches, found.loader.workers) == (2, 1, 1, 1)
    times_s = (found.step_s, found.fetch_s, found.arithmetic_s, found.memory_s, found.waits_s)
    assert times_s == pytest.approx((10e-3, 2e-3, 3e-3, 1e-3, 1e-3))


@pytest.mark.parametrize(
    ("name", "reads"),
    # .item(), a boolean mask, torch.cuda.synchronize() with CUDA and ROCm; not what goes on
    [
        ("aten::_local_scalar_dense", 1),
        ("aten::nonzero", 1),
        ("cudaDeviceSynchronize", 1),
        ("hipDeviceSynchronize", 1),
        ("cudaStreamSynchronize", 0),
        ("aten::nonzero_static", 0),
    ],
)
def test_what_the_host_waits_for_is_a_read(name, reads):
    call = event(name, 2, 3, "cpu_op" if name.startswith("aten") else "cuda_runtime")
    marks = [event(FETCH, 0, 1, "user_annotation"), event(STEP, 1, 8, "user_annotation")]
    found = read_loop(SEEN, [*marks, call, event("gemm", 2, 1, "kernel", tid=20)])
    assert (found.reads, found.waits_s) == (reads, pytest.approx(3e-3 * reads))


@pytest.mark.parametrize(
    ("fetch_ms", "work_start", "work_ms", "exposed"),
    # of a fetch that the profiler did not see, nothing is known to be hidden
    [(1, 0.0, 9, 0.0), (1, 0.5, 4, 0.5), (1, 2.0, 4, 1.0), (0, 0.0, 9, 1.0)],
)
def test_a_batch_that_is_fetched_while_the_device_works_costs_nothing(
    fetch_ms, work_start, work_ms, exposed
):
    events = []
    for begin in range(0, 100, 10):
        events += [
            event(FETCH, begin, fetch_ms, "user_annotation"),
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
            event("a short one beside it", begin + 2.6, 0.1, "kernel", tid=21),
            # the second is launched then, too, and starts 3 ms after the first has ended
            event("cudaLaunchKernel", begin + 2.5, 0.5, "cuda_runtime", number=2 * begin + 2),
            event("gemm", begin + 6.5, 1, "kernel", tid=20, number=2 * begin + 2),
        ]
    assert read_loop(SEEN, events).queued_s == pytest.approx(3e-3)


@pytest.mark.parametrize(("gap_ms", "python_ms"), [(0.15, 0), (0.25, 5), (1.0, 5)])
def test_pauses_between_calls_are_launches_unless_they_are_long(gap_ms, python_ms):
    # five long pauses a step, or fifty short ones, beside calls that take the rest of 10 ms
    pauses = round(5 / gap_ms)
    call_ms = 5 / pauses
    events = []
    for begin in range(0, 110, 11):
        events += [
            event(FETCH, begin, 1, "user_annotation"),
            event(STEP, begin + 1, 10, "user_annotation"),
        ]
        for number in range(pauses):
            start = begin + 1 + number * (gap_ms + call_ms)
            events.append(event("aten::add", start, call_ms, "cpu_op"))
        events.append(event("kernel", begin + 1, 0.001, "kernel", tid=20))
    seen = read_loop(SEEN, events)
    assert 1e3 * seen.python_s == pytest.approx(python_ms, abs=0.01 + gap_ms)


def test_the_optimizer_and_other_threads_are_told_from_the_loops_own_python():
    events = []
    for begin in range(0, 100, 10):
        events += [
            event(FETCH, begin, 1, "user_annotation"),
            event(STEP, begin + 1, 9, "user_annotation"),
            event("Optimizer.step#Adam.step", begin + 1, 4, "user_annotation"),
            event("my own block", begin + 5, 5, "user_annotation"),
            event("metrics.py(7): update", begin + 5, 5, "python_function"),
            event("aten::pin_memory", begin + 5, 5, "cpu_op", tid=99),
            event("kernel", begin + 1, 0.001, "kernel", tid=20),
        ]
    assert 1e3 * read_loop(SEEN, events).python_s == pytest.approx(5, abs=0.01)


@pytest.mark.parametrize("in_closure", [True, False])
def test_python_in_an_optimizers_closure_is_the_loops_own(in_closure):
    # Lightning runs the whole training_step in such a closure
    weight = torch.nn.Parameter(torch.ones(50, 50))
    adam = torch.optim.Adam([weight])

    def closure():
        adam.zero_grad()
        time.sleep(0.02 * in_closure)
        loss = (weight @ weight).sum()
        loss.backward()
        return loss

    steps = schedule(wait=0, warmup=1, active=5, repeat=1)
    with profile(schedule=steps, acc_events=True) as profiler:
        for _ in range(6):
            adam.step(closure)
            time.sleep(0.02 * (not in_closure))
            profiler.step()
    assert bottleneck_of(read_trace(profiler)).parts_s["own Python"] >= 0.02


def test_a_trace_that_torch_wrote_here_is_read_by_its_path(tmp_path):
    matrix = torch.ones(600, 600)
    path = tmp_path / "trace.json"
    steps = schedule(wait=0, warmup=1, active=5, repeat=1)
    with profile(
        schedule=steps, on_trace_ready=lambda one: one.export_chrome_trace(str(path))
    ) as profiler:
        for _ in range(6):
            for _ in range(4):
                matrix @ matrix
            profiler.step()
    packed = tmp_path / "trace.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    found = bottleneck_of(path)
    assert (found.device, found.limit, found.operations) == ("cpu", "arithmetic", 4)
    assert bottleneck_of(str(packed)) == found == bottleneck_of(json.loads(path.read_text()))


@pytest.mark.parametrize("calibrated", [True, False])
def test_the_work_of_a_cpu_is_that_of_its_large_operations_without_the_overhead_of_each(calibrated):
    events = []
    for number, begin in enumerate((0, 20, 40)):
        name = STEP if calibrated else f"ProfilerStep#{number}"
        events += [
            event(FETCH, begin - 1, 1, "user_annotation"),
            event(name, begin, 18, "user_annotation"),
            # of 0.1 ms, 4.9 and 5.1 times as long, and a call that is 0.3 ms itself
            *(event("aten::t", begin + k, 0.1, "cpu_op") for k in (1, 1.5, 2, 2.5)),
            event("aten::neg", begin + 3, 0.49, "cpu_op"),
            event("aten::exp", begin + 4, 0.51, "cpu_op"),
            event("aten::matmul", begin + 5, 2.3, "cpu_op"),
            event("aten::mm", begin + 5, 1, "cpu_op"),
            event("aten::mm", begin + 6, 1, "cpu_op"),
            event("aten::copy_", begin + 6.25, 0.25, "cpu_op"),
        ]
        if number == 0:  # not in most steps
            events.append(event("aten::sort", begin + 9, 4, "cpu_op"))
        if number < 2:  # in most
            events.append(event("aten::abs", begin + 14, 3, "cpu_op"))
    events[6]["dur"] += 60  # once aten::neg is disturbed
    if calibrated:
        events.append(event(SMALLEST, 70, 9, "user_annotation"))
        events += [event("aten::add", 70 + k, (0.05, 0.1, 7)[k], "cpu_op") for k in range(3)]
        found = read_loop(LoopRecord("cpu", "cpu", step_s=18e-3, fetch_s=0.0), events)
    else:
        found = record_of({"traceEvents": events})
    large_ms = (0.51 - 0.1) + (1 - 0.1) + (0.75 - 0.1)
    # what is in most steps where the loop is ours; else all that was called, as by a validation
    large_ms += 3 - 0.1 if calibrated else (4 - 0.1 + 2 * (3 - 0.1)) / 3
    assert 1e3 * found.arithmetic_s == pytest.approx(large_ms)
    # the disturbed one is no arithmetic, though with it the mean of the three would be: 0.51 ms
    assert 1e3 * found.lost_s == pytest.approx(0 if calibrated else 0.51 - 0.1)
    assert found.operations == 8


def test_a_card_whose_number_is_another_in_the_list_is_still_named():
    # AMD's cards work as process 2 and are listed as 0 (TraceLens' traces of an MI300X)
    kernel = {**event("Cijk_Ailk", 1, 1, "kernel"), "pid": 2}
    step = event("ProfilerStep#1", 0, 3, "user_annotation")
    cards = [{"id": number, "name": "AMD Instinct MI300X"} for number in (0, 1)]
    trace = {"traceEvents": [kernel, step], "deviceProperties": cards}
    assert record_of(trace).device == "AMD Instinct MI300X"
    assert record_of({**trace, "deviceProperties": [7]}).device == "a device"
