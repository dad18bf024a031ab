import json
import tempfile
from pathlib import Path

from course_tools.timeline import trace
from course_tools.timeline.trace import complete_events, lanes_of, steps_of, threads_of


def test_on_windows_the_profiler_gets_no_path_with_letters_that_it_would_not_find(
    tmp_path, monkeypatch
):
    # its C++ part takes the path for one in the system's code page (kineto, output_json.cpp)
    class Profiler:
        def export_chrome_trace(self, path):
            Path(path.encode().decode("cp1252")).write_text(
                json.dumps({"traceEvents": []}), encoding="utf-8"
            )

    home = tmp_path / "Jürgen Müller"
    home.mkdir()
    monkeypatch.chdir(home)
    monkeypatch.setattr(tempfile, "tempdir", str(home))
    monkeypatch.setattr(trace, "NEAR", ".")
    assert trace.read_trace(Profiler()) == {"traceEvents": []}
    assert not list(home.iterdir())


def event(name, start, duration, tid=7, category="cpu_op", pid=7):
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": start,
        "dur": duration,
    }


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


def test_host_copies_and_streams_have_a_lane_each():
    assert [(lane.name, lane.kind) for lane in lanes_of(GPU, MAIN)] == [
        ("host", "host"),
        ("launches", "launches"),
        ("copies", "copies"),
        ("stream 7", "device"),
    ]


def test_lanes_of_a_second_gpu_say_whose_they_are():
    twins = [{**each, "pid": 1} for each in GPU if each["pid"] == 0]
    names = [lane.name for lane in lanes_of(GPU + twins, MAIN)]
    assert sorted(names[2:]) == ["GPU 0 copies", "GPU 0 stream 7", "GPU 1 copies", "GPU 1 stream 7"]


def test_times_begin_with_the_first_event_and_nested_operations_are_left_out():
    host, _, copies, stream = lanes_of(GPU, MAIN)
    assert shown(host.named) == [("forward", 0, 30)]
    assert shown(host.work)[0] == ("aten::mm", 2, 12)
    assert shown(copies.work) == [("Memcpy HtoD (Pinned -> Device)", 25, 45)]
    assert shown(stream.work) == [("ampere_sgemm_128x64_nn", 20, 70)]


def test_waiting_for_the_device_is_no_work():
    host = lanes_of(GPU, MAIN)[0]
    assert shown(host.waits) == [("cudaStreamSynchronize", 52, 92)]
    assert shown(host.work)[1:] == [("aten::item", 50, 52), ("aten::item", 92, 95)]


def test_a_thread_is_drawn_as_what_its_name_says():
    events = [
        event("matmul", 0, 1, tid=8),
        event("copy_", 0, 1, tid=9),
        event("launch", 0, 1, tid=10),
    ]
    names = {8: "device (rehearsal)_0", 9: "copies (rehearsal)", 10: "MainThread"}
    lanes = lanes_of(events, names)
    assert [lane.name for lane in lanes] == ["host", "copies (rehearsal)", "device (rehearsal)"]


def test_a_trace_without_work_has_no_lanes():
    assert lanes_of(GPU[-1:], MAIN) == ()


def test_two_threads_of_one_name_are_two_lanes():
    events = [event("aten::mm", 0, 10, tid=8), event("aten::add", 2, 3, tid=9)]
    lanes = lanes_of(events, {8: "worker", 9: "worker"})
    assert [(lane.name, shown(lane.work)) for lane in lanes] == [
        ("worker", [("aten::mm", 0, 10)]),
        ("worker", [("aten::add", 2, 5)]),
    ]


def test_a_trace_of_2021_reads_like_one_of_today():
    old = [
        event("ProfilerStep#5", 90, 120, category="Operator"),
        event("enumerate(DataLoader)#_SingleProcessDataLoaderIter", 92, 5, category="Operator"),
        event("aten::mm", 102, 10, category="Operator"),
        event("cudaLaunchKernel", 104, 5, category="Runtime"),
        event("NllLossBackward", 110, 5, tid=8, category="Operator"),
        event("gemm", 120, 50, tid="stream 7", category="Kernel", pid=0),
        event("Memcpy HtoD", 125, 20, tid="stream 7", category="Memcpy", pid=0),
        {"ph": "s", "cat": "async", "ts": 104},
    ]
    events = complete_events({"traceEvents": old})
    assert [step["name"] for step in steps_of(events)] == ["ProfilerStep#5"]
    lanes = lanes_of(events, threads_of(events))
    names = ["host", "backward", "launches", "copies", "stream 7"]
    assert [lane.name for lane in lanes] == names
    assert shown(lanes[0].named) == [("loader", 0, 5)]


def test_kernels_of_nccl_are_a_lane_of_their_own():
    exchange = event("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 130, 9, category="kernel", pid=0)
    lanes = {lane.kind: lane for lane in lanes_of([*GPU, exchange], MAIN)}
    assert lanes["exchange"].name == "NCCL" and shown(lanes["exchange"].work)[0][1:] == (30, 39)
    assert [span.name for span in lanes["device"].work] == ["ampere_sgemm_128x64_nn"]


def test_a_copy_that_the_host_waits_for_is_no_work_of_the_host():
    pageable = event("cudaMemcpyAsync", 200, 30, category="cuda_runtime")
    host = lanes_of([*GPU, pageable], MAIN)[0]
    assert shown(host.waits)[-1] == ("cudaMemcpyAsync", 100, 130)
