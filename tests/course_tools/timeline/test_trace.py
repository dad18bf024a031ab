import json
import tempfile
from pathlib import Path

import pytest

from course_tools.timeline import trace
from course_tools.timeline.trace import complete_events, open_trace, steps_of, threads_of, work_of
from course_utils.devices import Device


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


def event(name, category, **changes):
    plain = {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7, "ts": 0, "dur": 1}
    return plain | changes


# Names of kernels in recordings of a V100, A100, MI250 and MI300X that others published.
@pytest.mark.parametrize(
    ("name", "category", "kind"),
    [
        ("volta_sgemm_64x64_nt", "kernel", "arithmetic"),
        ("void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3>", "kernel", "arithmetic"),
        ("volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", "kernel", "arithmetic"),
        ("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwc", "kernel", "arithmetic"),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_16>", "kernel", "arithmetic"),
        ("Cijk_Alik_Bljk_SB_Bias_AS_SAV_UserArgs_MT64x16x32", "kernel", "arithmetic"),
        ("attn_fwd", "kernel", "arithmetic"),
        ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512>", "kernel", "memory"),
        ("void cudnn::ops::nchwToNhwcKernel<float, float, float>", "kernel", "memory"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native>", "kernel", "memory"),
        ("void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor>", "kernel", "memory"),
        ("triton__0d1d2d3d4d5d6d", "kernel", "memory"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", "kernel", "exchange"),
        ("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy", "copies"),
        ("Memcpy DtoD (Device -> Device)", "gpu_memcpy", "memory"),
        ("Memset (Device)", "gpu_memset", "memory"),
        # as cuDNN, Inductor and RCCL name theirs
        ("void cudnn::ops::convertTensor_kernel<float, __half>", "kernel", "memory"),
        ("triton_red_fused__native_batch_norm_legit_convolution_3", "kernel", "memory"),
        ("void ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", "kernel", "exchange"),
        ("aten::mm", "cpu_op", None),
        ("gemm", "gpu_user_annotation", None),
    ],
)
def test_each_event_has_one_kind_of_work(name, category, kind):
    assert work_of(event(name, category)) == kind


def test_the_thread_of_the_steps_is_the_main_one_and_autograds_is_named():
    steps, earlier = (
        event("ProfilerStep#5", "user_annotation"),
        event("ProfilerStep#4", "user_annotation", ts=-9),
    )
    events = [event("aten::mm", "cpu_op"), event("NllLossBackward0", "cpu_op", tid=8), steps]
    events += [event("aten::add", "cpu_op", tid=tid) for tid in (8, 9)]
    events += [event("autograd::engine::evaluate_function: X", "cpu_op", tid=6)]
    events += [event("ProfilerStep#5", "gpu_user_annotation", tid=20)]
    assert steps_of(events) == [steps] and steps_of([*events, earlier]) == [earlier, steps]
    names = {6: "backward", 7: "MainThread", 8: "backward", 9: "thread 9"}
    assert threads_of(events) == names


def test_the_profiler_sees_the_work_that_the_host_did_not_wait_for(monkeypatch):
    done = []
    monkeypatch.setattr(trace, "wait_for", lambda device: done.append(str(device)))
    found = trace.run_profiled(lambda: done.append("work"), Device("mps", 0, "a GPU"))
    assert done == ["work", "mps:0"]
    assert "wait for the device" in {one["name"] for one in complete_events(found)}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "trace.json is not a Chrome trace: "),
        (b"\x1f\x8bnothing", "trace.json is not a Chrome trace: "),
        (b"[" * 100_000, "trace.json is not a Chrome trace: "),
        (b"\xff\xfe", "trace.json is not a Chrome trace: "),
        (b"{}", "trace.json is not a Chrome trace: it has no list of traceEvents"),
        (b'"text"', "it has no list of traceEvents"),
        (b'{"traceEvents": {}}', "it has no list of traceEvents"),
    ],
)
def test_a_file_that_is_no_trace_is_refused_in_a_sentence(tmp_path, content, words):
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words):
        open_trace(path)


@pytest.mark.parametrize(
    ("damaged", "words"),
    [
        (7, "event 1 of the trace is damaged: it is '7' and no object"),
        (event(None, "kernel"), "its name is None and no text"),
        (event(5, "kernel"), "its name is 5 and no text"),
        (event("gemm", "kernel", dur=None), "its 'dur' is 'None' and no time"),
        (event("gemm", "kernel", ts="soon"), "its 'ts' is 'soon' and no time"),
        (event("gemm", "kernel", ts=float("nan")), "its 'ts' is 'nan' and no time"),
        (event("gemm", "kernel", ts=10**400), "its 'ts' is '1000"),
        (event("gemm", "kernel", ts=-1.1e18), "its 'ts' is '-1.1e"),  # the year 33,000
        (event("gemm", "kernel", dur=-1), "it ends before it begins"),
        (event("gemm", ["kernel"]), "its cat, pid or tid is"),
        (event("gemm", "kernel", tid={}), "its cat, pid or tid is"),
        (event("gemm", "kernel", args=[1]), "its args are"),
        (event("gemm", "kernel", args={"correlation": []}), "its correlation is neither"),
    ],
)
def test_a_damaged_event_is_named_in_a_sentence(damaged, words):
    with pytest.raises(ValueError, match=words):
        complete_events([event("gemm", "kernel", ts=0.9e18), damaged])
