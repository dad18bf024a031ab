"""What a probe computes on a device is held against the CPU's answer."""

import json
import sys
from types import SimpleNamespace

import pytest
import torch

from course_tools.doctor import probes
from course_tools.doctor.packages import Package
from course_tools.doctor.run_child import PREFIX, read_outcome


@pytest.mark.parametrize("factor", [1.0, 1.5, 0.5, float("nan")])
def test_an_answer_that_differs_is_wrong_also_if_it_is_no_number(factor, monkeypatch, capsys):
    monkeypatch.setattr(torch.Tensor, "cpu", lambda self: self * factor)
    probes._try_kernels(["cpu"])
    (said,) = [line for line in capsys.readouterr().out.splitlines() if '"kernel"' in line]
    kernel = json.loads(said.removeprefix(PREFIX))["kernel"]
    assert kernel["device"] == "cpu" and ("wrong" in kernel) is (factor != 1)


class Sick(torch.Tensor):
    """A tensor of a device on which one operation gives twice what it should."""

    operations: tuple[str, ...] = ()

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            out = function(*args, **(kwargs or {}))
            out = out * 2 if function.__name__ in cls.operations else out
            return out.as_subclass(cls) if isinstance(out, torch.Tensor) else out


@pytest.mark.parametrize(
    ("operations", "wrong"),
    [
        (("clone",), "a copy"),
        (("add", "__add__"), "an addition"),
        (("matmul", "__matmul__"), "a matrix product"),
        (("conv2d",), "a convolution"),
        (("mul", "__mul__"), "a gradient"),
        ((), None),
    ],
)
def test_each_of_five_kernels_is_run_and_compared(operations, wrong, monkeypatch):
    monkeypatch.setattr(Sick, "operations", operations)
    monkeypatch.setattr(torch.Tensor, "to", lambda self, device: self.as_subclass(Sick))
    assert probes._compare_with_cpu("sick").get("wrong") == wrong


@pytest.mark.parametrize("hip", [None, "6.4"])
def test_every_card_is_named_and_tried_once_cuda_has_started(hip, monkeypatch, capsys):
    done = []
    cuda = SimpleNamespace(
        init=lambda: done.append("start"),
        get_arch_list=lambda: ["sm_90"],
        device_count=lambda: 2,
        get_device_name=lambda card: f"name of {card}",
        get_device_capability=lambda card: (9, 0),
    )
    monkeypatch.setattr(probes, "_import_torch", lambda: SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(probes, "read_package", lambda name: Package("2.9.0", hip=hip))
    monkeypatch.setattr(probes.ctypes, "CDLL", lambda name: done.append(name))
    monkeypatch.setattr(probes, "_compare_with_cpu", lambda card: done.append(card) or {})
    probes.run("cuda")
    outcome = read_outcome(0, capsys.readouterr().out.encode())
    first = [] if hip else [probes.CUDA_LIBRARY]  # ROCm has another
    assert done == [*first, "start", "cuda:0", "cuda:1"]
    assert [kernel["device"] for kernel in outcome.kernels] == ["cuda:0", "cuda:1"]
    assert outcome.facts["cuda:1"] == {"name": "name of cuda:1", "capability": [9, 0]}
    assert outcome.facts["archs"] == ["sm_90"] and "error" not in outcome.facts


def test_every_card_of_intels_is_tried(monkeypatch, capsys):
    torch_for_xpu = SimpleNamespace(xpu=SimpleNamespace(device_count=lambda: 2))
    monkeypatch.setattr(probes, "_import_torch", lambda: torch_for_xpu)
    monkeypatch.setattr(probes, "_compare_with_cpu", lambda card: {})
    probes.run("xpu")
    kernels = read_outcome(0, capsys.readouterr().out.encode()).kernels
    assert [kernel["device"] for kernel in kernels] == ["xpu:0", "xpu:1"]


def test_what_ends_a_probe_is_told_in_one_line_without_cudas_advice(monkeypatch, capsys):
    def end():
        raise SystemExit("CUDA error: no\n kernel\nCUDA kernel errors might be reported later")

    monkeypatch.setattr(probes, "mps", end)
    probes.run("mps")
    outcome = read_outcome(0, capsys.readouterr().out.encode())
    assert outcome.facts == {"error": "SystemExit: CUDA error: no kernel"}
    assert len(probes._message(ValueError("x" * 999))) == 600


def test_xla_is_tried_on_its_first_device_once_its_library_is_loaded(monkeypatch, capsys):
    done = []
    runtime = SimpleNamespace(device_type=lambda: "TPU")
    fake = SimpleNamespace(device=lambda: done.append("device") or "xla:0", runtime=runtime)
    monkeypatch.setitem(sys.modules, "torch_xla", fake)
    monkeypatch.setitem(sys.modules, "torch_xla.runtime", runtime)
    monkeypatch.setattr(probes, "_import_torch", lambda: None)
    monkeypatch.setattr(probes, "load_libpython", lambda: done.append("library"))
    monkeypatch.setattr(probes, "_compare_with_cpu", lambda device: done.append(device) or {})
    probes.run("xla")
    outcome = read_outcome(0, capsys.readouterr().out.encode())
    assert done == ["library", "device", "xla:0"] and outcome.facts["hardware"] == "TPU"
