import json
import tempfile
from pathlib import Path

from course_utils.timeline import trace
from course_utils.timeline.trace import OURS, lanes_of, name_event


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


# What a GPU adds to a trace: kernels, copies and NCCL's kernels on streams, and the driver's calls
# on the host.
GPU = [
    event("forward", 100, 30, category="user_annotation"),
    event("aten::mm", 102, 10),
    event("cudaLaunchKernel", 104, 5, category="cuda_runtime"),
    event("ampere_sgemm_128x64_nn", 120, 50, tid=7, category="kernel", pid=0),
    event("Memcpy HtoD (Pinned -> Device)", 125, 20, tid=20, category="gpu_memcpy", pid=0),
    event("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 160, 30, tid=24, category="kernel", pid=0),
    event("aten::item", 150, 45),
    event("cudaStreamSynchronize", 152, 40, category="cuda_runtime"),
    event("forward", 118, 54, category="gpu_user_annotation", pid=0),
    event("PyTorch Profiler (0)", 0, 500, tid="PyTorch Profiler", category="Trace", pid="Spans"),
]


def test_host_copies_streams_and_exchange_have_a_lane_each():
    assert [(lane.name, lane.kind) for lane in lanes_of(GPU)] == [
        ("host", "host"),
        ("copies", "copies"),
        ("stream 7", "device"),
        ("exchange", "exchange"),
    ]


def test_the_main_thread_of_a_process_is_its_host_also_where_its_number_is_another_as_on_a_mac():
    ranks = [event("backward", 10, 20, tid=8123456 + pid, pid=pid) for pid in (7, 8)]
    exchange = [event("gloo:all_reduce", 20, 5, tid=8123499 + pid, pid=pid) for pid in (7, 8)]
    names = [
        name_event("thread_name", 7, 8123463, "thread 8123463 ()"),
        name_event("process_name", 7, OURS, "rank 0"),
    ]
    lanes = lanes_of([*ranks, *exchange, *names])
    assert [lane.name for lane in lanes] == ["rank 0 host", "rank 0 exchange", "host", "exchange"]


def test_lanes_of_a_second_gpu_say_whose_they_are():
    twins = [{**each, "pid": 1} for each in GPU if each["pid"] == 0]
    assert [lane.name for lane in lanes_of(GPU + twins)][4:] == [
        "GPU 1 copies",
        "GPU 1 stream 7",
        "exchange",
    ]


def test_times_begin_with_the_first_event_and_nested_operations_are_left_out():
    host, copies, stream, _ = lanes_of(GPU)
    assert shown(host.named) == [("forward", 0, 30)]
    assert shown(host.work)[0] == ("aten::mm", 2, 12)
    assert shown(copies.work) == [("Memcpy HtoD (Pinned -> Device)", 25, 45)]
    assert shown(stream.work) == [("ampere_sgemm_128x64_nn", 20, 70)]


def test_waiting_for_the_device_is_no_work():
    host = lanes_of(GPU)[0]
    assert shown(host.waits) == [("cudaStreamSynchronize", 52, 92)]
    assert shown(host.work)[1:] == [("aten::item", 50, 52), ("aten::item", 92, 95)]


def test_the_host_waits_for_an_exchange_that_ends_while_it_does_nothing():
    lanes = lanes_of(
        [
            event("aten::mm", 0, 10),
            # hidden behind the product
            event("gloo:all_reduce", 5, 3, tid=8, category="user_annotation"),
            event("gloo:all_reduce", 9, 21, tid=9, category="user_annotation"),
            event("aten::add_", 30, 5),
        ]
    )
    assert shown(lanes[0].waits) == [("wait for the exchange", 10, 30)]
    assert (lanes[1].name, len(lanes[1].work)) == ("exchange", 2)


def test_a_thread_is_drawn_as_what_its_name_says():
    events = [
        event("matmul", 0, 1, tid=8),
        event("copy_", 0, 1, tid=9),
        event("launch", 0, 1, tid=10),
    ]
    names = [
        name_event("thread_name", 7, 8, "device (rehearsal)_0"),
        name_event("thread_name", 7, 9, "copies (rehearsal)"),
        name_event("thread_name", 7, 10, "MainThread"),
    ]
    lanes = lanes_of([*events, *names])
    assert [lane.name for lane in lanes] == ["host", "copies (rehearsal)", "device (rehearsal)"]


def test_the_name_of_a_process_stands_before_those_of_its_lanes():
    assert [
        lane.name
        for lane in lanes_of(
            [event("aten::mm", 0, 1), name_event("process_name", 7, OURS, "rank 1")]
        )
    ] == ["rank 1 host"]


def test_a_trace_without_work_has_no_lanes():
    assert lanes_of(GPU[-1:]) == ()


def test_a_thread_that_only_waits_can_stand_beside_an_exchange():
    events = [event("cudaDeviceSynchronize", 0, 5), event("gloo:all_reduce", 1, 3)]
    assert {lane.kind for lane in lanes_of(events)} >= {"host"}


def test_two_threads_of_one_name_are_two_lanes():
    named = [name_event("thread_name", 7, tid, "worker") for tid in (8, 9)]
    lanes = lanes_of([event("aten::mm", 0, 10, tid=8), event("aten::add", 2, 3, tid=9), *named])
    assert [(lane.name, shown(lane.work)) for lane in lanes] == [
        ("worker", [("aten::mm", 0, 10)]),
        ("worker", [("aten::add", 2, 5)]),
    ]


def test_a_block_of_torch_compile_keeps_a_name():
    (lane,) = lanes_of([event("## Call CompiledFxGraph fab ##", 0, 5, category="user_annotation")])
    assert [span.name.strip() for span in lane.named] == ["Call CompiledFxGraph fab"]
