"""Order, nesting and gaps of real traces. No test here depends on how long something takes."""

import json

import pytest
import torch
from torch.profiler import record_function

from course_tools.timeline.bottleneck import bottleneck_of
from course_tools.timeline.timeline import Timeline, lanes_of
from course_tools.timeline.trace import run_profiled
from course_utils.devices import pick_device


def recorded(fn):
    return Timeline.of_trace(run_profiled(fn, pick_device("cpu")))


def names(lane):
    return [span.name for span in lane.named]


def test_named_blocks_come_in_order_and_contain_their_operations():
    def fn():
        with record_function("first"):
            torch.ones(64, 64) @ torch.ones(64, 64)
        with record_function("second"):
            torch.ones(64).exp()

    (host,) = recorded(fn).lanes
    assert names(host) == ["first", "second"]
    first, second = host.named
    inside = {
        span.name
        for span in host.work
        if first.start_s <= span.start_s and span.end_s <= first.end_s
    }
    assert "aten::matmul" in inside and "aten::exp" not in inside
    assert first.end_s <= second.start_s
    assert "aten::mm" not in {span.name for span in host.work}  # it lies in aten::matmul


def test_times_that_a_program_has_noted_itself_become_lanes():
    found = Timeline.of_spans(
        {
            "worker 0": [("decode", 10.0, 12.0), ("decode", 13.0, 14.0)],
            "worker 1": [("decode", 11, 14)],
        }
    )
    one, two = found.lanes
    assert (one.name, two.name, found.end_s) == ("worker 0", "worker 1", pytest.approx(4.0))
    assert one.busy_s == pytest.approx(3.0) and two.work[0].start_s == pytest.approx(1.0)
    own, device = Timeline.of_spans({"me": [("a", 0, 1)], "device": [("b", 1, 2)]}).lanes
    assert (own.kind, own.named, device.kind, device.named) == ("noted", own.work, "device", ())
    empty = Timeline.of_spans({"worker": [("nothing", 1.0, 1.0)]})
    assert empty.end_s == 0.0 and empty.plot().png
    assert Timeline.of_spans({}).lanes == ()


def test_a_step_of_the_cnn_is_small_enough_for_a_notebook():
    from course_lessons.data.models import ImageCNN

    model, images = ImageCNN(), torch.zeros(8, 3, 32, 32)
    data, _ = recorded(lambda: model(images).sum().backward())._repr_mimebundle_()
    assert len(json.dumps(data)) < 200_000


def event(name, start, duration, tid=7, category="cpu_op", pid=7):
    whose = {"pid": pid, "tid": tid}
    return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": duration, **whose}


def shown(lane):
    return [(span.name, round(span.start_s * 1e6), round(span.end_s * 1e6)) for span in lane]


# What a GPU adds to a trace: kernels and copies on streams, and the driver's calls on the host.
GPU = [
    event("forward", 100, 30, category="user_annotation"),
    event("aten::mm", 102, 10),
    event("cudaLaunchKernel", 104, 5, category="cuda_runtime"),
    event("ampere_sgemm_128x64_nn", 120, 50, tid=7, category="kernel", pid=0),
    event("Memcpy HtoD (Pinned -> Device)", 125, 20, tid=20, category="gpu_memcpy", pid=0),
    event("aten::item", 150, 45),
    event("cudaStreamSynchronize", 152, 40, category="cuda_runtime"),
    event("forward", 118, 54, category="gpu_user_annotation", pid=0),
    event("PyTorch Profiler (0)", 0, 500, tid="PyTorch Profiler", category="Trace", pid="Spans"),
]


MAIN = {7: "MainThread"}


def test_the_main_thread_stands_first_and_a_thread_that_only_names_its_work_has_it():
    events = [
        event("aten::mm", 90, 10, tid=9),
        event("aten::mm", 100, 10),
        event("no wait", 110, 5),
        event("of a worker", 120, 5, tid=8, category="user_annotation"),
    ]
    lanes = lanes_of(events, {7: "MainThread", 8: "worker", 9: "backward"})
    assert [(lane.name, lane.kind) for lane in lanes] == [
        ("host", "host"),
        ("backward", "host"),
        ("worker", "host"),
    ]
    host, _, worker = lanes
    assert host.waits == () and len(host.work) == 2
    assert shown(worker.work) == [("of a worker", 30, 35)] == shown(worker.named)


def test_only_the_marked_steps_of_a_trace_are_shown_from_the_first_on():
    events = [
        # Python's own calls, which the profiler notes under with_stack=True, have no lane
        event("train.py(1): <module>", 20, 5000, category="python_function"),
        event("aten::add", 50, 10),
        event("aten::add", 50, 10, tid=8),
        event("ProfilerStep#0", 100, 50, category="user_annotation"),
        event("aten::mm", 110, 10),
        event("wait", 120, 20, tid=8, category="user_annotation"),
        event("ProfilerStep#1", 150, 50, category="user_annotation"),
        event("gemm", 190, 40, tid=20, category="kernel", pid=0),
    ]
    found = Timeline.of_trace({"traceEvents": events})
    assert [shown(lane.work) for lane in found.lanes] == [
        [("aten::mm", 10, 20)],
        [],
        [("gemm", 90, 100)],
    ]
    assert shown(found.lanes[1].waits) == [("wait", 20, 40)]


def test_host_copies_and_streams_have_a_lane_each_and_waiting_is_no_work():
    lanes = lanes_of(GPU, MAIN)
    kinds = [("host", "host"), ("launches", "launches"), ("copies", "copies")]
    assert [(lane.name, lane.kind) for lane in lanes] == [*kinds, ("stream 7", "device")]
    host, _, copies, stream = lanes  # times begin with the first event
    assert shown(host.named) == [("forward", 0, 30)]
    waited = [("aten::item", 50, 52), ("aten::item", 92, 95)]
    assert shown(host.work) == [("aten::mm", 2, 12), *waited]  # but for what is inside them
    assert shown(host.waits) == [("cudaStreamSynchronize", 52, 92)]
    assert shown(copies.work) == [("Memcpy HtoD (Pinned -> Device)", 25, 45)]
    assert shown(stream.work) == [("ampere_sgemm_128x64_nn", 20, 70)]


def test_lanes_of_a_second_gpu_say_whose_they_are():
    twins = [{**each, "pid": 1} for each in GPU if each["pid"] == 0]
    names = [lane.name for lane in lanes_of(GPU + twins, MAIN)]
    assert sorted(names[2:]) == ["GPU 0 copies", "GPU 0 stream 7", "GPU 1 copies", "GPU 1 stream 7"]


def test_blocks_of_pytorch_have_short_names():
    blocks = ["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "## forward ##"]
    blocks += ["Optimizer.zero_grad#SGD.zero_grad", "Optimizer.step#SGD.step"]
    rows = [event(name, 10 * n, 5, category="user_annotation") for n, name in enumerate(blocks)]
    (host,) = lanes_of(rows, MAIN)
    assert names(host) == ["loader", "forward", "zero_grad", "optimizer"]
    assert host.work == host.named  # where nothing else is noted


def test_a_trace_without_work_has_no_lanes():
    assert lanes_of(GPU[-1:], MAIN) == ()


def test_two_threads_of_one_name_are_two_lanes():
    events = [event("aten::mm", 0, 10, tid=8), event("aten::add", 2, 3, tid=9)]
    lanes = lanes_of(events, {8: "worker", 9: "worker"})
    assert [(lane.name, shown(lane.work)) for lane in lanes] == [
        ("worker", [("aten::mm", 0, 10)]),
        ("worker", [("aten::add", 2, 5)]),
    ]


def test_kernels_of_nccl_are_a_lane_of_their_own():
    exchange = event("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 130, 9, category="kernel", pid=0)
    lanes = {lane.kind: lane for lane in lanes_of([*GPU, exchange], MAIN)}
    assert lanes["exchange"].name == "NCCL" and shown(lanes["exchange"].work)[0][1:] == (30, 39)
    assert [span.name for span in lanes["device"].work] == ["ampere_sgemm_128x64_nn"]


def test_a_copy_that_the_host_waits_for_is_no_work_of_the_host():
    pageable = event("cudaMemcpyAsync", 200, 30, category="cuda_runtime")
    host = lanes_of([*GPU, pageable], MAIN)[0]
    assert shown(host.waits)[-1] == ("cudaMemcpyAsync", 100, 130)


def test_the_picture_and_the_verdict_agree_on_what_the_device_did():
    steps = [event("ProfilerStep#1", 0, 1000, category="user_annotation")]
    work = [
        event("Memset (Device)", 0, 400, category="gpu_memset", pid=0),
        event("Memcpy DtoD (Device -> Device)", 400, 400, category="gpu_memcpy", pid=0),
        event("sgemm", 800, 10, category="kernel", pid=0),
    ]
    trace = {"traceEvents": steps + work}
    (lane,) = Timeline.of_trace(trace).lanes
    found = bottleneck_of(trace)
    assert (lane.kind, lane.busy_s) == ("device", pytest.approx(810e-6))
    assert found.parts_s["memory"] == pytest.approx(800e-6)
    assert found.parts_s["arithmetic"] == pytest.approx(10e-6)
    assert found.operations == 3 and found.parts_s["copies"] == 0
