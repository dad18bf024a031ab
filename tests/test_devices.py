"""Finding and choosing devices, without starting one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from stand_ins import (
    FOREIGN,
    REPOSITORY,
    machine_with,
    needs_cuda_build,
    needs_gcc,
    needs_linux,
    stub_driver,
    stub_package,
)

from course_utils.devices import Device, DeviceList, find_devices, pick_device, wait_for
from course_utils.hardware import detect
from course_utils.hardware.nvidia import Card, Driver

pytestmark = pytest.mark.process


HOSTILE_CARD = "<script>alert(1)</script>\x1b[31m图形处理器 \"'&" + "x" * 300
V5E = ("0x1ae0", "0x0063", "0x088000")
V4 = ("0x1ae0", "0x005e", "0x088000")
has_xla = pytest.mark.skipif(
    not detect.xla_matches_torch(), reason="needs a torch_xla that fits torch"
)
no_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")

# What a look at the devices must not do, and the print that an independent witness can check.
QUIET = """
import socket, subprocess, sys, torch
def forbid(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.fork"):
        print("TOUCHED", event)
sys.addaudithook(forbid)
import course_utils
from course_lessons.start.cuda_watch import is_cuda_initialized
for device in course_utils.find_devices():
    print(device, ascii(device.name), device.memory_bytes, ascii(device.detail), sep=" | ")
print(course_utils.pick_device(), torch.cuda.is_initialized(), is_cuda_initialized(), "torch_xla" in sys.modules)
"""


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for variable in FOREIGN:
        monkeypatch.delenv(variable, raising=False)


def look(path=None, **variables):
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(path or ""), str(REPOSITORY)])),
    }
    command = [sys.executable, "-c", QUIET]
    done = subprocess.run(
        command, env={**environment, **variables}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@needs_linux
@needs_gcc
@needs_cuda_build
def test_cards_are_described_without_starting_cuda_xla_a_program_or_the_network(tmp_path):
    """Stand-in: the driver libraries of a machine with an H200 and a T4, seen in the order 1, 0."""
    cards = "NVIDIA H200|GPU-aaaa|150754820096|9|0;Tesla T4|GPU-bbbb|15843721216|7|5"
    lines = look(
        **stub_driver(tmp_path, cards=cards),
        CUDA_VISIBLE_DEVICES="1,0",
        CUDA_DEVICE_ORDER="PCI_BUS_ID",
    )
    assert lines[0] == "cuda:0 | 'Tesla T4' | 15843721216 | 'compute capability 7.5'"
    assert lines[1] == "cuda:1 | 'NVIDIA H200' | 150754820096 | 'compute capability 9.0'"
    assert lines[2].startswith("cpu | ")
    assert lines[-1] == "cuda:0 False False False"
    assert not [line for line in lines if "TOUCHED" in line]


@needs_linux
@needs_gcc
@needs_cuda_build
def test_unlike_cards_in_an_order_that_cuda_may_change_say_so(tmp_path):
    """Stand-in: as above, without CUDA_DEVICE_ORDER, so that CUDA puts the fastest card first."""
    lines = look(**stub_driver(tmp_path, cards="Tesla T4|GPU-a|1|7|5;NVIDIA H200|GPU-b|2|9|0"))
    assert "another order" in lines[0] and "another order" in lines[1]


@needs_linux
@needs_gcc
@needs_cuda_build
def test_a_driver_too_old_for_this_torch_makes_no_device(tmp_path):
    """Stand-in: the driver libraries of a machine whose driver stops at CUDA 11.4."""
    lines = look(**stub_driver(tmp_path, cards="Tesla T4|GPU-a|1|7|5"), STUB_DRIVER_CUDA="11040")
    assert lines[0].startswith("cpu | ")


@needs_linux
@needs_gcc
@needs_cuda_build
def test_once_cuda_runs_its_own_names_and_order_are_told(tmp_path):
    """Stand-in: the CUDA runtime below torch, started by a first tensor."""
    code = "import torch; torch.zeros(1, device='cuda'); import course_utils; print(course_utils.find_devices()[0])"
    driver = stub_driver(tmp_path, cards="the driver's name|GPU-a|1|7|5")
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),
        "STUB_NAME": "CUDA's name",
        **driver,
    }
    code += "; print(course_utils.find_devices()[0].name, course_utils.find_devices()[0].detail)"
    said = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120
    )
    assert said.stdout.splitlines() == ["cuda:0", "CUDA's name compute capability 8.0"], said.stderr


@needs_linux
@needs_gcc
@needs_cuda_build
def test_a_hostile_card_stays_text_in_the_card_and_on_one_line_of_the_table(tmp_path):
    """Stand-in: a driver that reports a hostile name; NVML cuts it at 96 bytes, which the stub does
    too.
    """
    lines = look(**stub_driver(tmp_path, cards=f"{HOSTILE_CARD}|GPU-a|1|7|5"))
    assert "<script>" in lines[0], "the name itself is reported as it is"
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


@pytest.mark.parametrize(("jetson", "names"), [(True, ["NVIDIA Jetson"]), (False, [])])
def test_the_gpu_of_a_jetson_without_a_management_library_is_found(
    root, jetson, names, monkeypatch
):
    """Stand-in: CUDA's count, and the file by which NVIDIA's Linux for Jetson says its release."""
    monkeypatch.setattr(torch.version, "cuda", "12.6")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(detect, "read_driver", lambda: None)
    if jetson:
        (root / "etc").mkdir()
        (root / "etc/nv_tegra_release").write_text("# R35 (release), REVISION: 4.1\n")
    assert [device.name for device in find_devices() if device.kind == "cuda"] == names


def test_the_gpu_of_a_mac_shares_the_computers_memory(root, monkeypatch):
    """Stand-in: torch's answer on a Mac."""
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    (found,) = [device for device in find_devices() if device.kind == "mps"]
    assert (
        found.name.startswith("GPU of ") and found.memory_bytes == find_devices()[-1].memory_bytes
    )
    assert str(pick_device("mps")) == "mps:0"


def test_intels_cards_are_named_from_the_pci_bus_while_xpu_is_not_started(root, monkeypatch):
    """Stand-in: torch's count on a machine with an Arc A770, and a copy of that machine's /sys."""
    monkeypatch.setattr(torch.xpu, "is_available", lambda: True)
    monkeypatch.setattr(torch.xpu, "device_count", lambda: 1)
    machine_with(root, ("0x8086", "0x56a0", "0x030000"))
    assert detect.xpus() == [Card("Intel graphics card 0x56a0")]
    (root / "usr/share/misc").mkdir(parents=True)
    (root / "usr/share/misc/pci.ids").write_text("# list\n8086  Intel\n\t56a0  DG2 [Arc A770]\n")
    assert detect.xpus() == [Card("Intel DG2 [Arc A770]")]
    monkeypatch.setattr(torch.xpu, "device_count", lambda: 2)  # of which the PCI bus shows one
    assert [card.name for card in detect.xpus()] == ["Intel DG2 [Arc A770]", "Intel graphics card"]


def rocm_machine(folder: Path) -> Path:
    nodes = folder / "sys/class/kfd/kfd/topology/nodes"
    for node, (simd, version) in enumerate([(0, 0), (1216, 90402), (240, 100300)]):
        (nodes / f"{node}/mem_banks/0").mkdir(parents=True)
        (nodes / f"{node}/properties").write_text(
            f"simd_count {simd}\ngfx_target_version {version}\nvendor_id 4098\ndevice_id 29857\n"
        )
        (nodes / f"{node}/mem_banks/0/properties").write_text(
            f"heap_type 1\nsize_in_bytes {node * 10**9}\n"
        )
    return folder


def test_rocm_cards_come_from_the_kernels_list_in_the_order_of_its_variables(root, monkeypatch):
    """Stand-in: the /sys of a machine with two AMD cards."""
    rocm_machine(root)
    assert [(card.name, card.memory_bytes, card.detail) for card in detect.rocm_cards()] == [
        ("AMD gfx942", 10**9, "gfx942"),
        ("AMD gfx1030", 2 * 10**9, "gfx1030"),
    ]
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "1")
    assert [card.name for card in detect.rocm_cards()] == ["AMD gfx1030"]
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "-1")
    assert detect.rocm_cards() == []
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "0")
    monkeypatch.setenv("ROCR_VISIBLE_DEVICES", "1,0")
    assert [card.name for card in detect.rocm_cards()] == ["AMD gfx1030"]


def test_two_amd_cards_of_one_model_are_two_cards(root, monkeypatch):
    """Stand-in: the /sys of the machine above, both cards the same."""
    nodes = rocm_machine(root) / "sys/class/kfd/kfd/topology/nodes"
    for name in ("properties", "mem_banks/0/properties"):
        (nodes / "2" / name).write_text((nodes / "1" / name).read_text())
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "1,0")
    assert [card.name for card in detect.rocm_cards()] == ["AMD gfx942", "AMD gfx942"]


@no_cuda
def test_the_cpu_is_best_where_there_is_no_accelerator():
    assert pick_device().kind == "cpu" and find_devices()[0].kind == "cpu"


def test_a_device_is_picked_by_its_name_or_by_course_device(monkeypatch):
    assert str(pick_device("cpu")) == "cpu" and pick_device("cpu:0").torch_device == torch.device(
        "cpu"
    )
    monkeypatch.setenv("COURSE_DEVICE", "cpu")
    assert pick_device().kind == "cpu"


def test_an_index_picks_that_device_and_no_index_the_first(monkeypatch):
    cards = [Device("cuda", index, f"card {index}") for index in range(2)]
    monkeypatch.setattr("course_utils.devices.find_devices", lambda: DeviceList(cards))
    assert [pick_device(name).name for name in ("cuda:1", "cuda:0", "cuda")] == [
        "card 1",
        "card 0",
        "card 0",
    ]


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
    assert "python -m course_utils.doctor --require cuda" in str(error.value)


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
    code = (
        "import torch, torch_xla, torch_xla.debug.metrics as met; from course_utils import wait_for\n"
        "x = torch.ones(8, device='xla'); before = met.metric_data('ExecuteTime'); y = x + 1; wait_for('xla')\n"
        "print((met.metric_data('ExecuteTime') or [0])[0] - (before or [0])[0])"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PJRT_DEVICE": "CPU"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.strip() == "1", done.stderr


def test_rocm_without_linuxs_own_driver_is_asked_for_its_cards(root, monkeypatch):
    """Stand-in: Windows, or Linux inside of it (WSL), where there is no /sys/class/kfd."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert detect.rocm_cards() == [Card("AMD graphics card")] * 2


def test_a_divided_card_does_not_promise_the_memory_of_the_whole(monkeypatch):
    """Stand-in: a driver that lists an A100 divided into slices, of which CUDA shows one."""
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    card = Card("NVIDIA A100", 42 * 10**9, "compute capability 8.0", uuid="GPU-1", mig=True)
    monkeypatch.setattr(detect, "read_driver", lambda: Driver("550.54", (12, 4), (card,)))
    [shown] = detect.cuda_cards()
    assert shown.memory_bytes is None and "one slice" in shown.detail
