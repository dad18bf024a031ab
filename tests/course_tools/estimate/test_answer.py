"""A row of the answer: hours, cost, and whether it fits."""

from dataclasses import replace

import pytest
import torch
from estimate_questions import one_line
from torch import nn

from course_tools.estimate import Machine, estimate
from course_tools.estimate.counting.count_work import count_work
from course_utils.timing import Timing

LAYER = nn.Linear(16, 4), torch.empty(1, 16)


def test_an_epoch_shorter_than_one_step_takes_a_whole_step():
    for samples, epochs, steps in ((1, 1, 1), (64, 1, 1), (96, 1, 1.5), (10, 5, 5), (96, 2, 3)):
        job = {"batch": 64, "samples": samples, "epochs": epochs}
        row = estimate(*LAYER, **job, devices=["T4"]).rows[0]
        assert row.hours == pytest.approx(steps * row.step_s / 3600)


def test_a_thousand_samples_have_a_price():
    found = estimate(*LAYER, samples=2000, devices=[Machine("T4", 1)])
    row = found.rows[0]
    each = row.long_cells()[4].removeprefix("$")
    assert float(each) == pytest.approx(row.cost / 2, rel=0.05)
    assert f"${each}" in one_line(found.details())
    cheap = replace(row, price=replace(row.price, per_hour=1e-3))
    assert cheap.long_cells()[4] == "< $0.0001"
    dear = replace(row, price=replace(row.price, per_hour=10_000.0))
    assert dear.long_cells()[4] == f"${dear.cost / 2:.2f}"
    for usd, text in ((0.056, "$0.06"), (0.0096, "$0.0096")):  # in cents where that is two digits
        priced = replace(row, step_s=3.6 * row.batch, price=replace(row.price, per_hour=usd))
        assert priced.long_cells()[4] == text
    home = replace(row, price=replace(row.price, kind="in homes"))  # unlike the rows beside it
    assert home.long_cells()[4] == f"${each}, in homes" and home.cells()[2].endswith(", in homes")
    two = replace(row, machine=Machine("T4", 2), price=replace(row.price, per_hour=10_000.0))
    assert two.long_cells()[4] == f"${2 * dear.cost / 2:.2f}"


def test_a_job_has_the_same_operations_on_one_device_as_on_two():
    one, two = estimate(*LAYER, batch=8, samples=800, epochs=3, devices=["T4", "2 x T4"]).rows
    assert one.flops == two.flops == pytest.approx(300 * count_work(*LAYER, batch=8).flops)


def test_a_measured_job_may_take_as_long_as_the_slow_end_of_the_median_says():
    timing = Timing("cpu", 1, 0.5, tuple(1 + 0.01 * each for each in range(21)), 1)
    row = estimate(*LAYER, devices=[], this_machine=timing, samples=100).rows[0]
    assert row.step_s == pytest.approx(1.1) and row.hours_interval[1] > row.hours
    assert row.step_interval_s[1] == pytest.approx(timing.interval_s[1])


def test_a_step_at_the_brim_just_fits_and_one_that_was_measured_fits():
    row, own = estimate(*LAYER, devices=["T4"], this_machine=1.0).rows
    shares = [replace(row, needed_bytes=share * row.capacity_bytes) for share in (0.91, 0.89)]
    assert [one.cells()[3] for one in (*shares, own)] == ["just", "yes", "yes"]
