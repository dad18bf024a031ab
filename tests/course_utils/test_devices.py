"""Finding and choosing devices, without starting one."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from stand_ins import FOREIGN, REPOSITORY, machine_with, stub_package

from course_utils.devices import (
    Device,
    DeviceList,
    as_device,
    find_devices,
    pick_device,
    wait_for,
)
from course_utils.hardware import detect
from course_utils.hardware.nvidia import Card, Driver

pytestmark = pytest.mark.process


HOSTILE_CARD = "<script>alert(1)</script>\x1b[31m \"'&" + "x" * 300
V5E = ("0x1ae0", "0x0063", "0x088000")
V4 = ("0x1ae0", "0x005e", "0x088000")
has_xla = pytest.mark.skipif(
    not detect.xla_matches_torch(), reason="needs a torch_xla that fits torch"
)
no_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")

# An audit hook is the witness that nothing is started and nothing is asked for.
QUIET = """
import socket, subprocess, sys, torch
def forbid(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system"):
        print("TOUCHED", event)
sys.addaudithook(forbid)
import course_utils
course_utils.find_devices()
print(torch.cuda.is_initialized(), "torch_xla" in sys.modules)
"""
TWO_CARDS = Driver(
    version="550.54",
    cuda=(12, 8),
    cards=(
        Card("Tesla T4", 15_843_721_216, "compute capability 7.5", uuid="GPU-a"),
        Card("NVIDIA H200", 150_754_820_096, "compute capability 9.0", uuid="GPU-b"),
    ),
)


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for variable in FOREIGN:
        monkeypatch.delenv(variable, raising=False)


def test_finding_devices_starts_neither_cuda_nor_xla_nor_a_program_nor_the_network():
    done = subprocess.run(
        [sys.executable, "-c", QUIET], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "False False\n"


@pytest.fixture
def driver(monkeypatch):
    """A machine where the driver, and a torch built for CUDA 12, see a T4 and an H200."""
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.setattr(detect, "read_driver", lambda: TWO_CARDS)


def cuda_names():
    return [(str(device), device.name) for device in find_devices() if device.kind == "cuda"]


def test_cards_are_listed_in_the_order_that_cuda_shows(driver, monkeypatch):
    assert cuda_names() == [("cuda:0", "Tesla T4"), ("cuda:1", "NVIDIA H200")]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert cuda_names() == [("cuda:0", "NVIDIA H200")]


def test_a_driver_too_old_for_this_torch_makes_no_device(driver, monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    assert cuda_names() == []


def test_once_cuda_runs_its_own_names_count(driver, monkeypatch):
    card = SimpleNamespace(name="CUDA's name", total_memory=10**9, major=8, minor=0)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: card)
    assert cuda_names() == [("cuda:0", "CUDA's name")]


def test_a_hostile_name_stays_text_in_the_card_and_on_one_line_of_the_table():
    devices = DeviceList([Device("cuda", 0, HOSTILE_CARD, 1)])
    assert "<script" not in devices._repr_html_() and "\x1b" not in devices._repr_html_()
    assert len(repr(devices).splitlines()) == 2 and "\x1b" not in repr(devices)


@has_xla
@no_cuda
def test_a_tpu_is_listed_for_each_chip_with_its_memory(root):
    machine_with(root, V5E, V5E)
    found = [device for device in find_devices() if device.kind == "xla"]
    assert [str(device) for device in found] == ["xla:0", "xla:1"]
    assert (
        found[0].name == "TPU v5e"
        and found[0].memory_bytes == 16 * 2**30
        and not found[0].rehearsal
    )


@has_xla
@no_cuda
def test_a_chip_of_tpu_7x_is_two_devices_with_half_of_its_memory_each(root):
    machine_with(root, ("0x1ae0", "0x0076", "0x088000"))
    found = [device for device in find_devices() if device.kind == "xla"]
    assert [(str(device), device.memory_bytes) for device in found] == [
        ("xla:0", 96 * 2**30),
        ("xla:1", 96 * 2**30),
    ]


@has_xla
def test_pjrt_device_cpu_turns_a_tpu_machine_into_a_rehearsal(root, monkeypatch):
    machine_with(root, V4)
    monkeypatch.setenv("PJRT_DEVICE", "CPU")
    found = [device for device in find_devices() if device.kind == "xla"]
    assert [device.rehearsal for device in found] == [True]


@has_xla
@no_cuda
def test_the_rehearsal_comes_last_and_says_what_it_is(root):
    found = find_devices()
    assert [(device.kind, device.rehearsal) for device in found] == [("cpu", False), ("xla", True)]
    assert "rehearsal" in found[1].name


def test_a_torch_xla_made_for_another_torch_is_not_listed(tmp_path, monkeypatch):
    """Stand-in: an installed torch_xla 2.4.0 on the path."""
    # another test may have loaded the real one
    monkeypatch.delitem(sys.modules, "torch_xla", raising=False)
    monkeypatch.syspath_prepend(str(stub_package(tmp_path, "torch_xla", "2.4.0", "")))
    assert not detect.xla_matches_torch()


def test_torchtpu_is_listed_through_torch_accelerator_and_only_beside_a_tpu(tmp_path):
    """Stand-in: a backend called "tpu" that registers itself with torch, and the /sys of a v5e
    machine.
    """
    code = f"""
    import torch
    from pathlib import Path
    torch.utils.rename_privateuse1_backend("tpu")
    class Module:
        is_available = staticmethod(lambda: True)
        device_count = staticmethod(lambda: 2)
        current_device = staticmethod(lambda: 0)
    torch._register_device_module("tpu", Module)
    torch._C._accelerator_getAccelerator = lambda: torch.device("tpu")
    from course_utils import find_devices
    from course_utils.hardware import machine
    machine.ROOT = Path({str(machine_with(tmp_path, V5E))!r})
    print([(str(d), d.name) for d in find_devices() if d.kind == "tpu"])
    machine.ROOT = Path("/nowhere")
    print([str(d) for d in find_devices() if d.kind == "tpu"])
    """
    script = tmp_path / "script.py"
    script.write_text("\n".join(line[4:] for line in code.splitlines()))
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.splitlines() == ["[('tpu:0', 'TPU v5e'), ('tpu:1', 'TPU v5e')]", "[]"], (
        done.stderr
    )


def test_the_gpu_of_a_mac_shares_the_computers_memory(root, monkeypatch):
    """Stand-in: torch's answer on a Mac."""
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    (found,) = [device for device in find_devices() if device.kind == "mps"]
    assert (
        found.name.startswith("GPU of ") and found.memory_bytes == find_devices()[-1].memory_bytes
    )
    assert str(pick_device("mps")) == "mps:0"


@no_cuda
def test_the_cpu_is_best_where_there_is_no_accelerator():
    assert pick_device().kind == "cpu" and find_devices()[0].kind == "cpu"


def test_a_device_is_picked_by_its_name_or_by_course_device(monkeypatch):
    assert str(pick_device("cpu")) == "cpu" and pick_device("cpu:0").torch_device == torch.device(
        "cpu"
    )
    monkeypatch.setenv("COURSE_DEVICE", "cpu")
    assert pick_device().kind == "cpu"


def test_an_index_picks_that_device_and_no_index_the_current_one(driver, monkeypatch):
    assert pick_device("cuda:1").name == "NVIDIA H200"
    assert pick_device("cuda").name == "Tesla T4"  # before CUDA has started, the first
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)  # after torch.cuda.set_device(1)
    assert pick_device("cuda").name == "NVIDIA H200"


def test_every_form_of_a_device_is_resolved_alike(driver, monkeypatch):
    device = pick_device("cuda:1")
    for form in ("cuda:1", torch.device("cuda", 1), device):
        assert as_device(form) == device
    monkeypatch.setenv("COURSE_DEVICE", "cuda:1")
    assert as_device(None) == device


def test_a_name_counts_for_more_than_course_device(monkeypatch):
    monkeypatch.setenv("COURSE_DEVICE", "cuda:99")
    assert pick_device("cpu").kind == "cpu"


@no_cuda
def test_a_torch_device_is_picked_as_its_name_is():
    assert pick_device(torch.device("cpu")) == pick_device("cpu")
    with pytest.raises(RuntimeError, match=r"device 'cuda:1' was requested, but this machine has"):
        pick_device(torch.device("cuda", 1))


@no_cuda
def test_a_missing_device_is_an_error_that_says_what_is_here_and_what_to_do():
    with pytest.raises(
        RuntimeError, match=r"device 'cuda:1' was requested, but this machine has cpu.*Pass None"
    ) as error:
        pick_device("cuda:1")
    assert "python -m course_tools.doctor --require cuda" in str(error.value)


@no_cuda
def test_a_missing_course_device_never_falls_back(monkeypatch):
    monkeypatch.setenv("COURSE_DEVICE", "cuda")
    with pytest.raises(
        RuntimeError,
        match=r"'cuda' was requested by the variable COURSE_DEVICE.*Unset COURSE_DEVICE",
    ):
        pick_device()


@pytest.mark.parametrize(
    "name", ["gpu", "cuda0", "cuda:", "cuda:-1", " cuda", "CUDA", "cuda:1:2", "cuda:one", 0]
)
def test_a_name_of_no_kind_is_refused_with_the_kinds(name):
    with pytest.raises(
        ValueError, match=r"names no kind of device. Write one of cpu, cuda, mps, xpu, xla, tpu"
    ):
        pick_device(name)


def test_a_device_knows_its_torch_device():
    assert (
        Device("cuda", 1, "x").torch_device == torch.device("cuda:1")
        and str(Device("xla", 0, "x")) == "xla:0"
    )


def test_devices_show_as_a_table_in_a_terminal_and_a_card_in_a_notebook():
    devices = DeviceList([Device("cpu", 0, "A CPU", 16 * 10**9, "8 cores")])
    assert repr(devices).splitlines() == [
        "device  name   memory  detail",
        "cpu     A CPU  16 GB   8 cores",
    ]
    assert "<td" in devices._repr_html_() and "A CPU" in devices[0]._repr_html_()


def test_waiting_for_the_cpu_returns():
    assert wait_for("cpu") is None and wait_for(Device("cpu", 0, "x")) is None


@has_xla
def test_waiting_for_xla_runs_what_was_recorded():
    """In a process of its own: importing torch_xla changes the one that does it."""
    code = """
import torch, torch_xla, torch_xla.debug.metrics as met
from course_utils import wait_for
x = torch.ones(8, device="xla")
before = met.metric_data("ExecuteTime")
y = x + 1
wait_for("xla")
print((met.metric_data("ExecuteTime") or [0])[0] - (before or [0])[0])
"""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PJRT_DEVICE": "CPU"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.strip() == "1", done.stderr
