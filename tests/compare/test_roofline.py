"""What limits a device: counted by hand beside what the code counts."""

import pytest
import torch

from course_utils.compare.comparison import Comparison
from course_utils.compare.record import Recording, Result
from course_utils.compare.recorded import as_comparisons
from course_utils.compare.roofline import Place, Roof, count_work, measure_roof, place
from course_utils.compare.suite import PRODUCT
from course_utils.devices import Device


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
    assert Place("w", 50, 5, 2.0).intensity == 10
    assert Place("w", 50, 5, 2.0).flop_per_s == 25


def test_a_roof_is_measured_and_work_stands_below_it():
    roof = measure_roof("cpu", max_s=0.02)
    there = place(PRODUCT, 64, "cpu", max_s=0.02)
    assert there.flop == PRODUCT.items(64)
    assert roof.flop_per_s > 0 and roof.bytes_per_s > 0


@pytest.mark.parametrize(("name", "figure"), [("NVIDIA H200", 67e12), ("Tesla T4", 8.1e12), ("NVIDIA L40S", None)])
def test_a_data_sheet_is_found_by_the_whole_name(monkeypatch, name, figure):
    monkeypatch.setattr("course_utils.compare.roofline._rate", lambda *args: 1.0)
    assert measure_roof(Device("cuda", 0, name)).data_sheet_flop_per_s == figure


def test_a_recording_becomes_comparisons_that_say_where_they_are_from():
    results = (
        Result("cnn", "fp32", 256, 51200.0, "samples/s"),
        Result("rnn", "fp32", 16, 40.0, "steps/s"),
        Result("product", "bf16", 1000, 2.0, "TFLOP/s"),
        Result("copy to the device", "pinned", 1000, 2.0, "GB/s"),
    )
    source = Recording("published", "Some GPU", "cuda", "", 0, "2022-03-01", "", "a guide", {}, results)
    found = {comparison.workload: comparison for comparison in as_comparisons(source)}
    assert set(found) == {"CNN step", "RNN step", "Matrix product"}
    assert all(isinstance(c, Comparison) and c.labels == ["Some GPU (published)"] for c in found.values())
    assert found["CNN step"].rows[0].rate == pytest.approx(51200)
    assert found["RNN step"].rows[0].median_s == pytest.approx(1 / 40)
    assert found["Matrix product"].rows[0].rate == pytest.approx(2e12)
