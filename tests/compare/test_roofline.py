"""What limits a device: counted by hand beside what the code counts."""

import pytest
import torch

from course_utils.compare.roofline import Roof, count_work, measure_roof, roofline_point
from course_utils.compare.workloads import PRODUCT
from course_utils.devices import Device

CPU = Device("cpu", 0, "a cpu")


def test_a_product_is_counted():
    left, right = torch.rand(30, 20), torch.rand(20, 10)
    assert count_work(lambda: left @ right) == (2 * 30 * 20 * 10, 4 * (30 * 20 + 20 * 10 + 30 * 10))


def test_an_elementwise_operation_is_counted():
    left, right, out = torch.rand(100), torch.rand(100), torch.empty(100)
    assert count_work(lambda: torch.add(left, right, out=out)) == (100, 1200)


def test_a_view_moves_nothing():
    values = torch.rand(10, 10)
    assert count_work(lambda: values.T.reshape(100).view(10, 10)[1:])[1] == 800  # the one real copy, read and written


def test_the_ridge_is_where_both_limits_meet():
    roof = Roof("d", "cpu", 100e9, 10e9)
    assert roof.ridge == 10


def test_a_roof_is_measured_and_work_stands_below_it():
    roof = measure_roof(CPU, max_s=0.02)
    point = roofline_point(PRODUCT, 64, CPU, max_s=0.02)
    assert point.intensity == 2 * 64**3 / (3 * 4 * 64**2)
    assert roof.flop_per_s > 0 and roof.bytes_per_s > 0 and point.flop_per_s > 0


def test_a_point_has_the_operations_of_one_call_in_the_time_of_one_call(monkeypatch):
    monkeypatch.setattr("course_utils.compare.roofline._rate", lambda *args: 0.5)
    assert roofline_point(PRODUCT, 8, CPU).flop_per_s == 8**3


@pytest.mark.parametrize(("name", "figure"), [("NVIDIA H200", 67e12), ("Tesla T4", 8.1e12), ("NVIDIA L40S", None)])
def test_a_data_sheet_is_found_by_the_whole_name(monkeypatch, name, figure):
    monkeypatch.setattr("course_utils.compare.roofline._rate", lambda *args: 1.0)
    assert measure_roof(Device("cuda", 0, name)).data_sheet_flop_per_s == figure
