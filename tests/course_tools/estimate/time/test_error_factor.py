"""Which kind of work a step is, and what its estimate may be off by."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from course_tools.estimate import estimate
from course_tools.estimate.chips import find_chip
from course_tools.estimate.counting.work import Sums, Work
from course_tools.estimate.time import error_factor as module
from course_tools.estimate.time.error_factor import (
    ErrorFactor,
    error_factor,
    kind_of,
    precision_of,
)
from course_tools.estimate.time.step_time import StepTime, fitted


def work_of(precision="fp16", **shares) -> Work:
    """Return a step of 1,000 operations, of which these shares are of a kind, the rest products."""
    kinds = {kind: Sums(1000 * share) for kind, share in shares.items()}
    return Work(1, 1, True, precision, **kinds, matrix=Sums(1000 - 1000 * sum(shares.values())))


@pytest.mark.parametrize(
    ("shares", "kind"),
    [
        ({}, "matrix products"),
        ({"recurrent": 0.11}, "recurrent layers"),
        ({"recurrent": 0.09}, "matrix products"),
        ({"convolution3d": 0.11}, "3-D convolutions"),
        ({"convolution3d": 0.09}, "vision transformers"),
        ({"convolution": 0.11, "attention": 0.011}, "convolutions with attention"),
        ({"depthwise": 0.11, "attention": 0.011}, "convolutions with attention"),
        ({"convolution": 0.09, "attention": 0.011}, "vision transformers"),
        ({"convolution": 0.4, "attention": 0.009}, "vision transformers"),
        ({"convolution": 0.51}, "2-D convolutions"),
        ({"convolution": 0.3, "depthwise": 0.21}, "2-D convolutions"),
        ({"convolution": 0.49}, "vision transformers"),
        ({"convolution": 0.002}, "vision transformers"),
        ({"convolution": 0.0005}, "matrix products"),
        ({"convolution": 0.0005, "attention": 0.1}, "transformers, fused attention"),
    ],
)
def test_a_step_is_the_kind_of_work_that_most_of_it_is(shares, kind):
    assert kind_of(work_of(**shares)) == kind


def test_a_step_without_arithmetic_is_of_no_special_kind():
    work = Work(1, 1, True, "default", other=Sums(0.0, 1.0, 1.0))
    assert kind_of(work) == "matrix products" and precision_of(work) == "fp32"


@pytest.mark.parametrize(
    ("share", "kind"), [(0.19, "2-D convolutions"), (0.21, "depthwise convolutions")]
)
def test_convolutions_are_depthwise_by_the_bytes_that_they_move(share, kind):
    moved = {"convolution": Sums(9, 100 * (1 - share)), "depthwise": Sums(1, 100 * share)}
    assert kind_of(Work(1, 1, True, "fp16", **moved)) == kind


@pytest.mark.parametrize(
    ("precision", "shares", "found"),
    [
        *(("default", {kind: 0.51}, "tf32") for kind in ("convolution", "depthwise")),
        ("default", {"convolution3d": 0.51}, "tf32"),
        ("default", {"convolution": 0.49}, "fp32"),
        ("fp32", {"convolution": 1}, "fp32"),
        ("tf32", {}, "tf32"),
        ("bf16", {}, "16 bits"),
    ],
)
def test_a_step_has_the_precision_of_most_of_its_arithmetic(precision, shares, found):
    assert precision_of(work_of(precision, **shares)) == found


def reasons(work, time, chip="A100", **asked):
    """Return the names of the factors that an estimate has, beside that of the kind of work."""
    found = error_factor(work, find_chip(chip), time, **asked)
    names = {one["about"]: name for name, one in fitted()["factors"].items() if "about" in one}
    return found, {names[about] for about in found.reasons if about in names}


TEXT = Work(1, 1, True, "bf16", attention=Sums(1.0), matrix=Sums(9.0, 0.0, 1000.0))


@pytest.mark.parametrize(
    ("parameters", "training", "loops"),
    [(299_999_999, True, True), (300_000_000, True, False), (10**6, False, False)],
)
def test_a_loop_shows_beside_the_step_of_a_small_model(parameters, training, loops):
    work = replace(TEXT, parameters=parameters, training=training)
    found, names = reasons(work, StepTime(0.0, 0.0, 1.0))
    assert ("loops" in names) == loops == (found.upper > found.factor)


@pytest.mark.parametrize(
    ("launch_s", "kernels", "asked", "named"),
    [
        (0.28, 1000, {}, set()),  # of hypot(0.28, 1): 27 %
        (0.33, 1000, {}, {"hosts training"}),
        (1.1, 10, {}, {"hosts training"}),
        (1.1, 10, {"chip": "v5e"}, set()),
    ],
)
def test_a_host_is_named_where_its_launches_count(launch_s, kernels, asked, named):
    work = replace(TEXT, matrix=Sums(9.0, 0.0, kernels))
    about = {"hosts", "hosts training"}
    assert reasons(work, StepTime(launch_s, 0.0, 1.0), **asked)[1] & about == named


@pytest.mark.parametrize(
    ("chip", "asked", "used", "checked"),
    [
        ("A100", {}, ["checked"], True),
        ("A100", {"compiled": True}, ["compiled"], False),
        ("T4", {}, ["checked", "low power"], True),
        (replace(find_chip("T4"), watts=75), {}, ["checked", "low power"], True),
        (replace(find_chip("T4"), watts=76), {}, ["checked"], True),
        ("V100 SXM2 32GB", {}, ["usual", "Volta"], False),
        ("MI300X", {}, ["usual", "AMD", "cards"], False),
        ("v5e", {}, ["usual", "vendor", "cards"], False),
    ],
)
def test_errors_of_different_origin_add_like_the_sides_of_a_right_angle(chip, asked, used, checked):
    work, known = replace(TEXT, training=False), fitted()["factors"]
    found = error_factor(work, find_chip(chip), StepTime(0.0, 0.0, 1.0), **asked)
    for side, factor in (("factor", found.factor), ("slower", found.upper)):
        each = [known[name].get(side, known[name]["factor"]) for name in used]
        assert math.log(factor) ** 2 == pytest.approx(sum(math.log(one) ** 2 for one in each))
    assert found.checked == checked


@pytest.mark.parametrize(("training", "hosts"), [(False, "hosts"), (True, "hosts training")])
def test_host_and_chip_have_a_factor_each_for_their_seconds(training, hosts):
    known, work = fitted()["factors"], replace(TEXT, training=training, parameters=10**9)
    for launch_s in (0.01, 1.0, 100.0):
        found = error_factor(work, find_chip("A100"), StepTime(launch_s, 0.0, 1.0))
        host, chip = known[hosts], known["checked"]["factor"]
        most_s = math.hypot(launch_s * host["slower"], chip)
        least_s = math.hypot(launch_s / host["factor"], 1 / chip)
        whole_s = math.hypot(launch_s, 1)
        assert (found.factor, found.upper) == pytest.approx((whole_s / least_s, most_s / whole_s))


@pytest.mark.parametrize(
    ("sources", "same_step", "checked", "near"),
    [
        (["a"], True, False, True),
        (["a", "b"], True, True, True),
        (["a", "b"], False, True, True),  # two measured the card at some work
        (["b"], False, False, False),  # one measured it, and the other step
    ],
)
def test_work_is_checked_where_two_sources_published_it(
    monkeypatch, sources, same_step, checked, near
):
    one = {"kind": kind_of(TEXT), "compiled": False, "measurements": 3, "off": {}}
    one |= {"training": TEXT.training == same_step, "sources": sources}
    one |= {"devices": {"A100 80GB": sources}}
    monkeypatch.setattr(module, "fitted", lambda: fitted() | {"evidence": [one]})
    found, used = module.compared(TEXT, find_chip("A100"))
    assert (found, used["near"]) == (checked, near)


def test_the_sentence_on_several_devices_has_the_widest_interval_of_them():
    known = {"T4": ErrorFactor(1.5, True, ()), "L4": ErrorFactor(1.25, True, (), 2.0)}
    said = module.in_one_sentence(known)
    assert "0.67 to 2 times the estimate in 90% of cases" in said
    known["L4"] = replace(known["L4"], checked=False)
    assert "0.67 to 1.5 times" in (said := module.in_one_sentence(known))
    assert "on L4 too few" in said and "0.8 to 2 times the estimate is assumed" in said


def test_a_card_of_a_family_that_was_compared_is_near_and_another_is_not():
    image = nn.Conv2d(3, 64, 3), torch.empty(1, 3, 224, 224)
    found = estimate(*image, batch=4096, devices=["A100", "A100 40GB", "H100"])
    known, near, far = found.rows
    assert known.checked and near.checked and not far.checked
    assert known.factor == pytest.approx(near.factor, rel=0.02) and known.factor < far.factor
