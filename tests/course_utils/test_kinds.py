"""One row is all that the helpers need of a kind, shown with one that they do not have."""

from types import SimpleNamespace

import pytest
import torch

from course_utils import find_devices, pick_device, to_device, wait_for
from course_utils.kinds import KINDS, Kind, kind_called
from course_utils.lightning import trainer_kwargs
from course_utils.timing import Stopwatch


@pytest.fixture
def waited(monkeypatch):
    """A machine with two accelerators of Intel's Gaudi, which torch calls "hpu"; it is the list of
    the devices that were waited for.
    """
    row = Kind(has_context=True, maker="Gaudi", lightning="hpu", block_s=0.5)
    monkeypatch.setitem(KINDS, "hpu", row)
    properties = SimpleNamespace(name="Gaudi 3", total_memory=128 * 10**9)
    module = SimpleNamespace(
        device_count=lambda: 2,
        is_initialized=lambda: True,
        current_device=lambda: 1,
        get_device_properties=lambda index: properties,
    )
    monkeypatch.setattr(torch, "hpu", module, raising=False)
    monkeypatch.setattr(torch, "get_device_module", lambda kind: {"hpu": module}[kind])
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda *_: torch.device("hpu"))
    devices = []
    monkeypatch.setattr(torch.accelerator, "synchronize", devices.append)
    monkeypatch.delenv("COURSE_DEVICE", raising=False)
    return devices


def test_a_sixth_kind_is_found_chosen_waited_for_and_timed(waited):
    found = [device for device in find_devices() if device.kind == "hpu"]
    assert [(str(each), each.name) for each in found] == [
        ("hpu:0", "Gaudi 3"),
        ("hpu:1", "Gaudi 3"),
    ]
    assert pick_device() == pick_device("hpu") == found[1]
    wait_for("hpu:0")
    assert waited == [torch.device("hpu:0")]
    watch = Stopwatch(lambda: None, found[0])
    assert watch.cpu_clock is None and watch.kind.block_s == 0.5
    watch.read()
    assert waited[1:] == [torch.device("hpu:0")] * 2


def test_a_sixth_kind_trains_with_lightning_by_its_name(waited):
    assert trainer_kwargs("hpu:0") == {"accelerator": "hpu", "devices": [0]}


def test_the_accelerators_of_torch_have_a_row_or_are_no_device_to_compute_on():
    assert {"cpu", "cuda", "mps", "xpu", "xla"} == set(KINDS)
    for name, row in KINDS.items():
        assert torch.device(name).type == name
        if row.activity:
            assert hasattr(torch.profiler.ProfilerActivity, row.activity)
    assert sum(row.host for row in KINDS.values()) == 1
    assert not kind_called("meta").host


def test_a_copy_is_queued_where_pytorch_does_that_rightly():
    """PyTorch's notes on CUDA and on Intel GPUs; pytorch/pytorch 189690 for MPS."""
    assert {name for name, row in KINDS.items() if not row.queues_copies} == {"cpu", "mps"}


def test_a_block_is_so_long_that_reading_the_clock_does_not_show():
    """The clock costs 1e-7 s, and waiting for a queue 1e-5 s: 0.05 and 0.25 % of a block."""
    for row in KINDS.values():
        cost_s, share = (1e-7, 0.0005) if row.host or row.lazy else (1e-5, 0.0025)
        assert cost_s / row.block_s == pytest.approx(share)


class Watched(torch.Tensor):
    def to(self, *target, **switches):
        self.asked = switches
        return self


@pytest.mark.parametrize("queues", [True, False])
def test_a_row_says_whether_a_copy_may_be_queued(waited, monkeypatch, queues):
    monkeypatch.setitem(KINDS, "hpu", Kind(queues_copies=queues))
    tensor = torch.ones(2).as_subclass(Watched)
    to_device([tensor], "hpu:1", non_blocking=True)
    assert tensor.asked == ({"non_blocking": True} if queues else {})
