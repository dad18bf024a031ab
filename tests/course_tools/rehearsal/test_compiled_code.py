"""Kernels of other packages: a sentence about each, and no all-clear."""

import ctypes
import importlib.util

import pytest
import torch

from course_tools.rehearsal import compiled_code, rehearse

KERNEL = """
import triton
import triton.language as tl

@triton.jit
def add(rows, out, count: tl.constexpr):
    places = tl.arange(0, count)
    tl.store(out + places, tl.load(rows + places) + 1)
"""
#: as flash-attn fails to import where no CUDA is
PACKAGE = "raise ImportError('libcudart.so.12: cannot open shared object file')\n"


def module_of(folder, name, code):
    path = folder / "site-packages" / f"{name}.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    return spec, importlib.util.module_from_spec(spec)


def run_triton(folder):
    pytest.importorskip("triton")
    spec, module = module_of(folder, "kernels", KERNEL)
    spec.loader.exec_module(module)
    rows = torch.ones(8, device="cuda")
    module.add[(1,)](rows, torch.empty_like(rows), 8)


def import_package(folder):
    spec, module = module_of(folder, "flash_attn", PACKAGE)
    spec.loader.exec_module(module)


def run_operation_without_a_kernel_for_the_cpu(folder):
    library = torch.library.Library("rehearsed_test", "FRAGMENT")
    try:
        library.define("only_cuda(Tensor rows) -> Tensor")
        library.impl("only_cuda", lambda rows: rows, "CUDA")
        torch.ops.rehearsed_test.only_cuda(torch.ones(2, device="cuda"))
    finally:
        library._destroy()


def ask_the_driver(folder):
    torch.cuda.caching_allocator_alloc(8)


@pytest.mark.parametrize(
    "program",
    [run_triton, import_package, run_operation_without_a_kernel_for_the_cpu, ask_the_driver],
    ids=lambda each: each.__name__,
)
def test_what_looks_for_a_real_gpu_fails_with_a_sentence_of_the_rehearsal(program, tmp_path):
    with pytest.raises(Exception) as caught, rehearse():
        program(tmp_path)
    (note,) = caught.value.__notes__
    assert "looked for a real GPU" in note and "Only PyTorch's own operations" in note


def test_an_error_that_a_program_raises_itself_is_left_alone():
    with pytest.raises(RuntimeError) as caught, rehearse():
        raise RuntimeError("this program needs CUDA 13")
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize(
    ("names", "what"),
    [
        (("CUDAGraph", "graph", "make_graphed_callables"), "CUDA graphs"),
        (("utilization", "temperature", "power_draw", "clock_rate", "memory_usage"), "the driver"),
        (("memory_snapshot",), "the allocator"),
        (("list_gpu_processes",), "other processes"),
    ],
)
def test_what_only_a_real_gpu_can_say_or_do_is_refused(names, what):
    with rehearse():
        for name in names:
            with pytest.raises(NotImplementedError, match=f"{name}: .*not simulate.* {what}"):
                getattr(torch.cuda, name)()


def test_an_operation_of_another_package_is_reported_and_runs_on_the_cpu():
    @torch.library.custom_op("rehearsed_test::twice", mutates_args=())
    def twice(rows: torch.Tensor) -> torch.Tensor:
        return rows * 2

    with rehearse() as rehearsal:
        assert twice(torch.ones(2, device="cuda")).device.type == "cuda"
    assert any(
        "rehearsed_test::twice is not PyTorch's" in each for each in rehearsal.report.remarks
    )


@pytest.mark.parametrize(
    "reader",
    [
        lambda rows: rows.__cuda_array_interface__,  # as Numba and CuPy read a tensor
        lambda rows: torch.utils.dlpack.to_dlpack(rows),
        lambda rows: rows.__dlpack__(),
        lambda rows: rows.data_ptr(),
    ],
    ids=["cuda_array_interface", "to_dlpack", "dlpack", "data_ptr"],
)
def test_what_reads_a_tensors_memory_is_reported(reader):
    with rehearse() as rehearsal:
        reader(torch.ones(2, device="cuda"))
    assert any("address of a tensor" in each for each in rehearsal.report.remarks)


def test_compiled_code_is_reported_if_it_was_linked_with_pytorch(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled_code, "NAMES_WITHIN", 60)
    for place, linked in (("start", (0, 99)), ("end", (99, 0)), ("middle", (99, 99))):
        library = tmp_path / f"{place}.so"
        library.write_bytes(b"\x7fELF" + bytes(linked[0]) + b"libc10.so" + bytes(linked[1]))
        assert compiled_code.links_pytorch(str(library)) == (place != "middle")
    nvidias = tmp_path / "nvidia" / "start.so"  # a library that PyTorch brings
    nvidias.parent.mkdir()
    (tmp_path / "start.so").rename(nvidias)
    assert not compiled_code.links_pytorch(str(nvidias))
    assert not compiled_code.links_pytorch(torch._C.__file__)
    assert not compiled_code.links_pytorch(ctypes.__file__)
    assert not compiled_code.links_pytorch(str(tmp_path / "none.so"))
    plain = tmp_path / "numbers.so"
    plain.write_bytes(b"\x7fELF" + bytes(100))
    assert not compiled_code.links_pytorch(str(plain))


def test_a_library_is_named_with_its_folder_and_without_the_way_there(monkeypatch):
    monkeypatch.setattr(compiled_code, "links_pytorch", lambda path: path.endswith("/libtorch.so"))
    (sentence,) = compiled_code.compiled_elsewhere()
    assert sentence.endswith("not looked at: lib/libtorch.so")


@pytest.mark.slow
@pytest.mark.process
def test_a_c_extension_runs_on_the_cpu_and_is_named(tmp_path):
    pytest.importorskip("ninja")
    from torch.utils.cpp_extension import load_inline

    code = """
    torch::Tensor twice(torch::Tensor rows) { return rows * 2; }
    torch::Tensor checked(torch::Tensor rows) {
        TORCH_CHECK(rows.is_cuda(), "rows must be a CUDA tensor");
        return rows;
    }
    """
    with rehearse() as rehearsal:
        extension = load_inline(
            "rehearsed_extension", code, functions=["twice", "checked"], build_directory=tmp_path
        )
        rows = torch.ones(2, device="cuda")
        assert extension.twice(rows).device.type == "cuda"
    assert any("rehearsed_extension" in each for each in rehearsal.report.remarks)
    with pytest.raises(RuntimeError, match="must be a CUDA tensor") as caught, rehearse():
        extension.checked(torch.ones(2, device="cuda"))
    assert "compiled code" in caught.value.__notes__[0]


def notes_on_a_gru_of_torch_xla():
    from torch_xla.experimental.gru import GRU

    with pytest.raises(RuntimeError) as failed, rehearse():
        GRU(4, 8).cuda()(torch.ones(5, 2, 4, device="cuda"))
    return failed.value.__notes__


def test_an_error_of_the_gru_that_torch_xla_puts_in_place_names_the_way_out(in_xla):
    (note,) = in_xla(notes_on_a_gru_of_torch_xla)
    assert "torch_xla replaced nn.GRU" in note and "torch.nn.modules.rnn.GRU" in note
