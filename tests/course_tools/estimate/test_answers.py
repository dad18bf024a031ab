"""The answers to a question, in a sentence, a table, a page and a file."""

import json
from dataclasses import replace

import pytest
import torch
from estimate_questions import one_line, plain
from torch import nn

from course_tools.estimate import Chip, estimate

X = torch.empty(1, 16)


@pytest.fixture(scope="module")
def model():
    return nn.Sequential(nn.Linear(16, 512), nn.ReLU(), nn.Linear(512, 10))


@pytest.fixture(scope="module")
def answer(model):
    return estimate(
        model, X, batch=64, samples=10**6, devices=["T4", "a100", "v5e"], prices={"t4": 0.5}
    )


def test_each_device_has_a_row_whose_figures_hang_together(answer):
    assert [row.device for row in answer.rows] == ["T4", "A100 80GB", "TPU v5e"]
    row = answer["T4"]
    assert row.samples_per_s * row.step_s == pytest.approx(64)
    assert row.hours == pytest.approx(10**6 / row.samples_per_s / 3600)
    assert row.flops == pytest.approx(answer.demand.work.flops * 10**6 / 64)  # of the whole job
    assert row.hours_interval[0] < row.hours < row.hours_interval[1]
    assert row.cost == pytest.approx(row.hours * 0.5)
    assert row.cost_interval[1] == pytest.approx(row.cost * row.evidence.upper)
    assert [row.precision for row in answer.rows] == ["fp16", "bf16", "bf16"]
    tpu = answer["v5e"]  # nobody compared it, nor is its price known
    assert tpu.factor > 2.5 and not tpu.checked and tpu.price is None is tpu.cost
    assert answer["a100"] is answer["A100 80GB"]
    with pytest.raises(KeyError, match="not among the devices"):
        answer["H100"]


def test_devices_without_a_price_are_named_only_where_others_have_one(model):
    for prices, said in ((None, False), ({"T4": 1}, True), ({"T4": 1, "A100": 2}, False)):
        notes = estimate(model, X, devices=["T4", "A100"], prices=prices, currency="EUR").notes()
        assert any("by cost: A100 80GB (no price)." in note for note in notes) == said


def test_each_row_says_whether_it_fits():
    wide, x = (
        nn.Sequential(*(nn.Linear(2**14, 2**14, device="meta") for _ in range(6))),
        torch.empty(1, 2**14),
    )
    answer = estimate(
        wide, x, batch=64, devices=["T4", "H100"], prices={"T4": 0.01, "H100": 3}, this_machine=1e6
    )
    assert answer["T4"].fits is False and answer["H100 SXM"].fits
    assert "no: needs 35.2 GB, has 16.1 GB" in plain(answer)
    assert "of 121" in one_line(answer.details())
    assert answer.to_dict()["rows"][0]["fits"] is False
    # What does not fit is not recommended, however cheap it is.
    assert answer.cheapest().device == "this machine"
    assert estimate(wide, x, batch=64, devices=["T4"], prices={"T4": 1}).cheapest() is None


def test_a_deadline_counts_the_far_end_of_the_interval(answer):
    slow = answer["T4"]
    alone = replace(answer, rows=(slow,))
    for hours, found in ((slow.hours, None), (slow.hours_interval[1], slow), (1e-9, None)):
        assert alone.cheapest(deadline_hours=hours) == found


def test_the_result_is_json_and_safe_html(answer):
    saved = json.loads(answer.to_json())
    assert saved["counted"]["matrix"]["flops"] == answer.demand.work.flops
    assert "ops" not in saved["counted"]
    assert saved["rows"][0]["hours"] == answer["T4"].hours
    name = "<script>alert(1)</script>"
    hostile = estimate(
        nn.Linear(2, 2),
        torch.empty(1, 2),
        devices=[Chip(name, 100, 900, 16)],
        this_machine=1.0,
        prices={"this machine": 1, name: 2},
    )
    shown = hostile._repr_html_()
    assert "<script" not in shown and "&lt;script&gt;alert(1)" in shown
    assert shown.startswith('<div class="mathjax_ignore')  # two prices are no formula
