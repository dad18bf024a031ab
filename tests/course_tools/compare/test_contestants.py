"""Who takes part in a comparison."""

import pytest
import torch

from course_tools.compare import contestants
from course_tools.compare.comparison import compare_devices
from course_tools.compare.contestants import Contestant, cpu_first, find_contestants
from course_tools.compare.workloads import ELEMENTWISE, PRODUCT
from course_utils.devices import Device

CPU = Device("cpu", 0, "a cpu")
GPU = Device("cuda", 0, "a gpu of this test")


def test_none_is_the_best_device_and_not_all_of_them(monkeypatch):
    monkeypatch.setenv("COURSE_DEVICE", "cpu")
    assert find_contestants(None) == find_contestants("cpu")
    found = compare_devices(PRODUCT, [8], None, max_s=0.01)
    assert {one.kind for one in found.measurements} == {"cpu"}


def test_the_cpu_takes_part_with_one_thread_and_with_all():
    threads = torch.get_num_threads()
    found = compare_devices(ELEMENTWISE, [64], ["cpu", "cpu"], max_s=0.01)
    assert found.labels == [Contestant(CPU, number).label for number in sorted({1, threads})]
    assert [one.threads for one in found.measurements] == sorted({1, threads})


def test_of_all_devices_the_cpu_is_the_first_since_the_others_are_held_against_it(monkeypatch):
    monkeypatch.setattr("course_tools.compare.contestants.find_devices", lambda: [GPU, CPU])
    assert cpu_first() == [CPU, GPU]


REHEARSAL = Device("xla", 0, "XLA on this CPU", rehearsal=True)


TPU = Device("xla", 0, "TPU v5e")


def test_the_rehearsal_takes_part_only_where_it_is_named(monkeypatch):
    monkeypatch.setattr(contestants, "find_devices", lambda: [CPU, REHEARSAL])
    assert {one.device for one in find_contestants()} == {CPU}


def test_all_devices_are_compared_after_a_backward_pass_too():
    torch.ones(1, requires_grad=True).sum().backward()
    found = compare_devices(lambda size, device: lambda: torch.ones(size), [1], max_s=0.01)
    assert not any("rehearsal" in label for label in found.labels)


def test_a_tpu_that_can_no_longer_be_started_is_left_out_with_a_warning(monkeypatch):
    def too_late():
        raise RuntimeError("XLA was started too late")

    monkeypatch.setattr(contestants, "find_devices", lambda: [TPU, CPU])
    monkeypatch.setattr(contestants, "start_xla", too_late)
    with pytest.warns(UserWarning, match="the TPU takes no part: XLA was started too late"):
        assert {one.device for one in find_contestants()} == {CPU}
    monkeypatch.setattr(contestants, "as_device", lambda device: TPU)
    with pytest.raises(RuntimeError, match="too late"):
        find_contestants(["xla"])
