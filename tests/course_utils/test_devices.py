"""Finding and choosing devices, without starting one."""

import sys
from types import SimpleNamespace

import pytest
import torch
from stand_ins import (
    FOREIGN,
    STUBS,
    compile_stub,
    machine_with,
    needs_gcc,
    needs_linux,
    stub_package,
)
from start_python import python

from course_utils.devices import (
    Device,
    DeviceList,
    as_device,
    as_torch_device,
    find_devices,
    pick_device,
    wait_for,
)
from course_utils.hardware import detect, machine, nvidia
from course_utils.hardware.card import Card
from course_utils.hardware.nvidia import Driver
from course_utils.xla import xla_counters

V5E = ("0x1ae0", "0x0063", "0x088000")
V7X = ("0x1ae0", "0x0076", "0x088000")
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
# NVML lists cards by their slot on the PCI bus. CUDA shows the fastest first, unless it is told
# otherwise: in this machine its cuda:0 is the RTX 4090.
UNLIKE_CARDS = Driver(
    version="550.54",
    cuda=(12, 8),
    cards=(
        Card("NVIDIA T1000", 4_294_967_296, "compute capability 7.5", uuid="GPU-a1"),
        Card("NVIDIA GeForce RTX 4090", 25_757_220_864, "compute capability 8.9", uuid="GPU-b2"),
    ),
)
H200 = Card("NVIDIA H200", 150_754_820_096, "compute capability 9.0", uuid="GPU-c3")


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for variable in FOREIGN:
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.process
def test_finding_devices_starts_neither_cuda_nor_xla_nor_a_program_nor_the_network():
    done = python("-c", QUIET, fresh=True)
    assert (done.stdout, done.stderr) == ("False False\n", "")


def torch_answers(monkeypatch, kind, count, **version):
    """Let torch answer as it does before it has started one of `count` accelerators."""
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda *_: torch.device(kind))
    module = torch.get_device_module(kind)
    monkeypatch.setattr(module, "device_count", lambda: count)
    if kind != "mps":
        monkeypatch.setattr(module, "is_initialized", lambda: False)
    for name, value in version.items():
        monkeypatch.setattr(torch.version, name, value)


@pytest.fixture
def unlike(monkeypatch):
    """A machine with a T1000 in its first slot and an RTX 4090 in its second."""
    torch_answers(monkeypatch, "cuda", 2, cuda="12.8", hip=None)
    monkeypatch.setattr(nvidia, "read_driver", lambda: UNLIKE_CARDS)


def start_cuda(monkeypatch, *cards, current=0):
    """Let torch answer as it does once CUDA runs."""
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: current)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(cards))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: cards[index])


def properties(name, total_memory):
    return SimpleNamespace(
        name=name, total_memory=total_memory, major=8, minor=9, gcnArchName="gfx942"
    )


def cuda_names():
    return [(str(device), device.name) for device in find_devices() if device.kind == "cuda"]


T1000, RTX_4090 = (card.name for card in UNLIKE_CARDS.cards)
EITHER = f"{T1000} or {RTX_4090}"


def test_unlike_cards_have_no_order_of_the_drivers_but_what_torch_says_once_it_runs(
    unlike, monkeypatch
):
    assert cuda_names() == [("cuda:0", EITHER), ("cuda:1", EITHER)]
    assert pick_device("cuda:0").memory_bytes is None
    fastest_first = properties(RTX_4090, 24 * 10**9), properties(T1000, 4 * 10**9)
    start_cuda(monkeypatch, *fastest_first)
    assert cuda_names() == [("cuda:0", RTX_4090), ("cuda:1", T1000)]
    assert pick_device("cuda:0").memory_bytes == 24 * 10**9


TWINS = Driver("575.57", (12, 8), (H200,) * 2)
IN_ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


@pytest.mark.parametrize(
    ("driver", "variables", "names"),
    [
        (UNLIKE_CARDS, IN_ORDER, [T1000, RTX_4090]),
        (UNLIKE_CARDS, {**IN_ORDER, "CUDA_VISIBLE_DEVICES": "1"}, [RTX_4090]),
        (UNLIKE_CARDS, {**IN_ORDER, "CUDA_VISIBLE_DEVICES": "2"}, [EITHER]),
        (UNLIKE_CARDS, {"CUDA_VISIBLE_DEVICES": "GPU-b"}, [RTX_4090]),
        (UNLIKE_CARDS, {"CUDA_VISIBLE_DEVICES": "GPU-b2"}, [RTX_4090]),
        (TWINS, {"CUDA_VISIBLE_DEVICES": "1,0"}, [H200.name, H200.name]),
        # a Jetson, or a container that was given the `compute` part of the driver alone
        (None, {}, ["NVIDIA graphics card", "NVIDIA graphics card"]),
    ],
)
def test_a_card_is_named_where_its_uuid_an_order_or_its_twins_tell_which_it_is(
    unlike, monkeypatch, driver, variables, names
):
    monkeypatch.setattr(nvidia, "read_driver", lambda: driver)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(names))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cuda_names() == [(f"cuda:{index}", name) for index, name in enumerate(names)]
    memory = {card.name: card.memory_bytes for card in (driver.cards if driver else ())}
    for index, name in enumerate(names):
        assert pick_device(f"cuda:{index}").memory_bytes == memory.get(name)


def test_a_driver_too_old_for_this_torch_makes_no_device(unlike, monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    assert cuda_names() == []
    assert pick_device().kind == "cpu"


MIG = "MIG-feee0c61-26ec-5616-bb59-b6d777cc4f34"


@needs_linux
@needs_gcc
def test_a_mig_slice_is_the_device_that_torch_counts_with_the_memory_of_the_slice(
    tmp_path, monkeypatch
):
    """Stub: an NVML with an A100 and one slice of it; torch counts one device (CUDA shows it)."""
    torch_answers(monkeypatch, "cuda", 1, cuda="12.8", hip=None)
    library = compile_stub(STUBS / "nvml.c", tmp_path / "libnvidia-ml.so.1")
    monkeypatch.setattr(nvidia, "LIBRARY", str(library))
    monkeypatch.setenv("STUB_CARDS", "NVIDIA A100-SXM4-40GB|GPU-5d5b|42949672960|8|0")
    monkeypatch.setenv("STUB_SLICES", f"NVIDIA A100-SXM4-40GB MIG 1g.5gb|{MIG}|5100273664|8|0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", MIG)
    found = pick_device("cuda")
    assert (str(found), found.memory_bytes) == ("cuda:0", 5_100_273_664)
    assert "1g.5gb" in found.name
    # by the number of its card, CUDA shows the card's first slice: the card's memory is not its own
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert pick_device("cuda").memory_bytes is None


def test_an_amd_card_is_described_as_soon_as_it_runs_and_by_everyone(monkeypatch):
    torch_answers(monkeypatch, "cuda", 1, cuda=None, hip="6.4")
    before = pick_device("cuda")
    assert (before.name, before.memory_bytes) == ("AMD graphics card", None)
    start_cuda(monkeypatch, properties("AMD Instinct MI300X", 206 * 10**9))
    for device in (pick_device("cuda"), pick_device(), find_devices()[0], as_device("cuda:0")):
        assert (device.name, device.memory_bytes) == ("AMD Instinct MI300X", 206 * 10**9)


def test_an_intel_card_is_counted_before_it_runs(monkeypatch):
    torch_answers(monkeypatch, "xpu", 1)
    assert [str(device) for device in find_devices()][:2] == ["xpu:0", "cpu"]
    assert str(pick_device()) == "xpu:0" and pick_device().memory_bytes is None


@has_xla
@no_cuda
@pytest.mark.parametrize(
    ("chips", "name", "memory_gib"),
    [([V5E, V5E], "TPU v5e", 16), ([V7X], "TPU 7x", 96)],  # a chip of 7x is two devices
)
def test_a_tpu_is_listed_for_each_device_of_its_chips_with_its_memory(
    root, chips, name, memory_gib
):
    machine_with(root, *chips)
    found = [device for device in find_devices() if device.kind == "xla"]
    assert [str(device) for device in found] == ["xla:0", "xla:1"]
    for device in found:
        assert (device.name, device.memory_bytes) == (name, memory_gib * 2**30)
        assert not device.rehearsal


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


def test_the_gpu_of_a_mac_shares_the_computers_memory(root, monkeypatch):
    torch_answers(monkeypatch, "mps", 1)
    found = pick_device()
    assert str(found) == "mps:0" and found.name.startswith("GPU of ")
    assert found.memory_bytes == find_devices()[-1].memory_bytes


def test_an_mps_that_torch_cannot_use_and_a_kind_unknown_to_the_course_are_left_alone(monkeypatch):
    torch_answers(monkeypatch, "mps", 0)
    assert pick_device().kind == "cpu"
    unknown = torch.device("privateuseone")
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda *_: unknown)
    assert pick_device().kind == "cpu"


def test_a_device_is_picked_by_its_name_which_counts_for_more_than_course_device(monkeypatch):
    assert pick_device("cpu:0").torch_device == torch.device("cpu")
    monkeypatch.setenv("COURSE_DEVICE", "cpu")
    assert pick_device().kind == "cpu"
    monkeypatch.setenv("COURSE_DEVICE", "cuda:99")
    assert str(pick_device("cpu")) == "cpu"


def test_the_current_device_is_the_one_that_the_program_has_set(unlike, monkeypatch):
    assert str(pick_device("cuda")) == "cuda:0"  # before CUDA has started, the first
    cards = properties(RTX_4090, 24 * 10**9), properties(T1000, 4 * 10**9)
    start_cuda(monkeypatch, *cards, current=1)  # after torch.cuda.set_device(1)
    for device in (pick_device(), pick_device("cuda"), as_device(None)):
        assert (str(device), device.name) == ("cuda:1", T1000)
    assert as_torch_device(None) == torch.device("cuda", 1)


def test_every_form_of_a_device_is_resolved_alike(unlike, monkeypatch):
    device = pick_device("cuda:1")
    for form in ("cuda:1", torch.device("cuda", 1), device):
        assert as_device(form) == device
        assert as_torch_device(form) == torch.device("cuda", 1)
    monkeypatch.setenv("COURSE_DEVICE", "cuda:1")
    assert as_device(None) == device


def test_which_device_is_meant_is_found_without_asking_the_driver_again(unlike, monkeypatch):
    start_cuda(monkeypatch, properties(RTX_4090, 24 * 10**9))
    monkeypatch.setattr(nvidia, "read_driver", lambda: pytest.fail("asked the driver"))
    monkeypatch.setattr(machine, "version_of", lambda name: pytest.fail("read files"))
    assert as_torch_device(None) == as_torch_device("cuda") == torch.device("cuda", 0)


@no_cuda
def test_a_missing_device_is_an_error_that_says_what_is_here_and_what_to_do():
    with pytest.raises(
        RuntimeError, match=r"device 'cuda:1' was requested, but this machine has cpu.*Pass None"
    ) as error:
        pick_device("cuda:1")
    assert "The course's doctor says why cuda:1 is missing" in str(error.value)
    with pytest.raises(RuntimeError, match=r"'cpu:1' was requested, .*Pass None.* one\.$"):
        pick_device("cpu:1")


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
        ValueError, match=r"names no kind of device. Write one of cpu, cuda, mps, xpu, xla,"
    ):
        pick_device(name)


def test_a_device_knows_its_torch_device():
    assert Device("cuda", 1, "x").torch_device == torch.device("cuda:1")
    assert str(Device("xla", 0, "x")) == "xla:0"


def test_devices_show_as_a_table_in_a_terminal_and_a_card_in_a_notebook():
    devices = DeviceList([Device("cpu", 0, "A CPU", 16 * 10**9, "8 cores")])
    assert repr(devices).splitlines() == [
        "device  name   memory  detail",
        "cpu     A CPU  16 GB   8 cores",
    ]
    assert "<td" in devices._repr_html_() and "A CPU" in devices[0]._repr_html_()


def programs_that_waiting_runs() -> int:
    recorded = torch.ones(8, device="xla") + 1
    before = xla_counters()
    wait_for("xla")
    assert recorded.cpu().tolist() == [2] * 8
    return (xla_counters() - before).executions


def test_waiting_for_xla_runs_what_was_recorded(in_xla):
    assert in_xla(programs_that_waiting_runs) == 1


@pytest.mark.parametrize(
    ("tpus", "rehearses", "fine"), [(2, False, "xla:1"), (0, True, "xla:0"), (0, False, None)]
)
def test_xla_has_the_tpus_of_this_machine_or_else_its_rehearsal(monkeypatch, tpus, rehearses, fine):
    monkeypatch.setattr(detect, "xla_tpus", lambda: [Card("a TPU")] * tpus)
    monkeypatch.setattr(detect, "can_rehearse", lambda: rehearses)
    monkeypatch.setattr(detect, "torch_accelerator", lambda: ("cuda", 0))
    monkeypatch.delenv("COURSE_DEVICE", raising=False)
    assert str(as_torch_device(None)) == ("xla:0" if tpus else "cpu")  # never the rehearsal
    if fine:
        assert str(as_torch_device(fine)) == fine
        fine = f"xla:{int(fine[-1]) + 1}"
    with pytest.raises(RuntimeError, match="was requested, but this machine has cpu"):
        as_torch_device(fine or "xla")
