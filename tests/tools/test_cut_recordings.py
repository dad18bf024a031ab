"""The tool that cuts the shown steps out of a published trace."""

from importlib.util import module_from_spec, spec_from_file_location

from small_machines import ROOT

spec = spec_from_file_location("cut_recordings", ROOT / "tools" / "cut_recordings.py")
tool = module_from_spec(spec)
spec.loader.exec_module(tool)


def event(name, start, duration, category, **more):
    times = {"ts": start, "dur": duration}
    return {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": 7, **times, **more}


TRACE = {
    "host_name": "a machine of theirs",
    "deviceProperties": [{"id": 0, "name": "A card", "totalGlobalMem": 1, "warpSize": 32}],
    "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2},
    "traceEvents": [
        event("ProfilerStep#1", 0, 100, "user_annotation"),
        event("ProfilerStep#2", 100, 100, "user_annotation"),
        event("aten::matmul", 110, 20, "cpu_op", args={"Input Dims": [[2, 2]]}),
        event("aten::mm", 112, 15, "cpu_op"),
        event("cudaLaunchKernel", 115, 5, "cuda_runtime", args={"correlation": 3, "cbid": 211}),
        event("cudaGetDevice", 121, 1, "cuda_runtime", args={"correlation": 4}),
        event("aten::item", 140, 20, "cpu_op"),
        event("aten::_local_scalar_dense", 141, 18, "cpu_op"),
        event("late_kernel", 95, 10, "kernel", pid=0, args={"correlation": 2, "grid": [1]}),
        event("gemm", 120, 30, "kernel", pid=0, args={"correlation": 3, "grid": [1]}),
        event("aten::add", 210, 5, "cpu_op"),
    ],
}


def test_a_cut_holds_the_outermost_operations_the_reads_the_calls_and_the_kernels_of_its_step():
    kept = tool.cut(TRACE, (2,))["traceEvents"]
    assert [one["name"] for one in kept] == [
        "late_kernel",
        "ProfilerStep#2",
        "aten::matmul",
        "cudaLaunchKernel",
        "gemm",
        "aten::item",
        "aten::_local_scalar_dense",
    ]


def test_a_cut_keeps_times_and_what_ties_a_kernel_to_its_launch_and_no_host_and_no_shape():
    small = tool.cut(TRACE, (2,))
    launch, kernel = small["traceEvents"][3], small["traceEvents"][4]
    assert (launch["ts"], launch["dur"], kernel["ts"]) == (115, 5, 120)
    assert launch["args"] == kernel["args"] == {"correlation": 3}
    assert small["deviceProperties"] == [{"id": 0, "name": "A card", "totalGlobalMem": 1}]
    assert small["distributedInfo"] == {"rank": 0, "world_size": 2}
    assert "a machine of theirs" not in str(small) and "Input Dims" not in str(small)


def test_a_cut_of_memory_holds_what_was_there_before_and_what_changed_in_between():
    ms = 1_000_000
    events = [[-1, 1, 100, 0], [5 * ms, 2, 10, 1], [6 * ms, 2, 7, 1], [7 * ms, 4, -10, 1]]
    small = tool.cut_memory(events, (0.5, 1.5))
    assert small == {"before_bytes": [100, 10], "events": [[6 * ms, 2, 7, 1]]}
