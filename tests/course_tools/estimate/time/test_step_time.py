"""The formula of time, term by term, against arithmetic by hand."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn

from course_tools.estimate import estimate
from course_tools.estimate.chips import Chip, find_chip
from course_tools.estimate.counting.work import Sums, Work
from course_tools.estimate.time.step_time import (
    Host,
    StepTime,
    cloud_host,
    numbers,
    seconds,
    step_time,
)

NUMBERS = {"arithmetic": 2.0, "attention": 1.5, "unaligned": 3.0, "depthwise": 0.1}
NUMBERS |= {"convolution_fp32": 0.5, "convolution3d": 4.0, "memory": 2.0, "convolution_memory": 3.0}
NUMBERS |= {"convolution_training": 5.0, "convolution_training_32": 7.0, "step_kernels": 100.0}
NUMBERS |= {"compiled": 4.0, "compiled_training": 2.5}
ASKED = {"peak": 1e12, "convolution_peak": 2e12, "plain_peak": 1e11, "winograd": False}
ASKED |= {"bandwidth": 1e9, "numbers": NUMBERS, "host": Host(1.0, 1e-3, "mine")}
step_of = partial(seconds, **ASKED)


@pytest.mark.parametrize(
    ("kind", "precision", "asked", "expected_s"),
    [
        *((kind, "fp32", {}, 2.0) for kind in ("matrix", "recurrent", "other")),
        ("attention", "bf16", {}, 2 * 1.5),
        ("attention", "tf32", {}, 2.0),
        ("convolution", "fp16", {}, 2 / 2),
        ("convolution", "fp32", {"winograd": True}, 0.5 / 2),
        ("convolution3d", "bf16", {}, 2 * 4 / 2),
        ("depthwise", "fp16", {}, 2 / 2),
        ("depthwise", "fp32", {}, 1 / (0.1 * 0.1)),
    ],
)
def test_an_operation_takes_its_arithmetic(kind, precision, asked, expected_s):
    work = Work(1, 1, False, precision, **{kind: Sums(1e12)})
    assert step_of(work, **asked).arithmetic_s == pytest.approx(expected_s)


@pytest.mark.parametrize(("precision", "expected_s"), [("fp16", 2 * (1 + 2)), ("tf32", 2)])
def test_products_with_odd_rows_take_longer_in_16_bits(precision, expected_s):
    work = Work(1, 1, False, precision, matrix=Sums(1e12), unaligned=1e12)
    assert step_of(work).arithmetic_s == pytest.approx(expected_s)


@pytest.mark.parametrize(
    ("kind", "training", "precision", "more", "expected_s"),
    [
        ("matrix", True, "fp16", {}, 2),
        ("matrix", True, "fp16", {"compiled": True}, 2),
        ("other", False, "fp32", {}, 2),
        ("other", False, "fp32", {"compiled": True}, 2 / 4),
        ("other", True, "fp32", {"compiled": True}, 2 / 2.5),
        ("convolution", False, "fp16", {}, 3),
        ("convolution", True, "bf16", {}, 3 * 5),
        ("convolution", True, "tf32", {}, 3 * 7),
        ("convolution", True, "fp16", {"channels_last": True}, 3),
        ("convolution", True, "fp32", {"channels_last": True}, 3 * 7),
        ("depthwise", True, "fp16", {"channels_last": True}, 3 * 5),
        ("convolution3d", False, "fp16", {}, 3 * 4),
        ("convolution3d", True, "fp16", {}, 3 * 4 * 5),
    ],
)
def test_an_operation_moves_its_bytes(kind, training, precision, more, expected_s):
    last = more.get("channels_last", False)
    work = Work(1, 1, training, precision, **{kind: Sums(0, 1e9)}, channels_last=last)
    compiled = more.get("compiled", False)
    assert step_of(work, compiled=compiled).memory_s == pytest.approx(expected_s)


@pytest.mark.parametrize(
    ("kind", "kernels", "asked", "expected_s"),
    [
        ("matrix", 200, {}, 1 + 0.2),
        ("matrix", 50, {}, 1 / 2 + 0.05),
        ("matrix", 0, {}, 1 / 100),
        ("matrix", 200, {"compiled": True}, 1 + 0.2),
        ("other", 200, {"compiled": True}, 1 + 0.2 / 4),
        ("other", 50, {"one_launch": True}, 1 + 0.001),
    ],
)
def test_a_host_launches_kernels_and_prepares_a_step(kind, kernels, asked, expected_s):
    work = Work(1, 1, False, "fp16", **{kind: Sums(0, 0, kernels)})
    found = step_of(work, **asked)
    assert found.launch_s == pytest.approx(expected_s) and found.limit == "launches"


def test_a_chip_with_one_kind_of_16_bits_takes_that_for_the_other():
    """As the T4, which has fp16 alone; a step in bf16 is what `count_work` counts by default."""
    chip = Chip("mine", {"fp16": 1.0}, 100.0, 16.0)
    half = Work(1, 1, False, "bf16", matrix=Sums(1e12))
    assert step_time(half, chip) == step_time(replace(half, precision="fp16"), chip)
    with pytest.raises(ValueError, match="'bf16' was asked of the mine"):
        step_time(half, Chip("mine", {"fp32": 1.0}, 100.0, 16.0))


def test_a_chip_of_round_figures_takes_round_seconds():
    """100 GB/s move 10^9 bytes in 0.01 s, and 1 TFLOP/s calculates 10^12 operations in 1 s."""
    chip = Chip("mine", 1.0, 100.0, 16.0)
    work = Work(1, 1, False, "fp16", matrix=Sums(1e12), other=Sums(0.0, 1e9, 1))
    found = step_time(work, chip)
    assert found.memory_s == pytest.approx(0.01 * numbers()["memory"])
    assert found.arithmetic_s == pytest.approx(numbers()["arithmetic"] / chip.achieved("fp16"))
    odd = replace(work, unaligned=1e12)  # what that costs is known of NVIDIA's tensor cores alone
    for vendor, longer in (("NVIDIA", numbers()["unaligned"]), ("AMD", 1)):
        took = step_time(odd, replace(chip, vendor=vendor)).arithmetic_s
        assert took == pytest.approx(longer * found.arithmetic_s)
    plain = Work(1, 1, False, "fp32", depthwise=Sums(1e12))  # outside the tensor cores
    assert step_time(plain, chip).arithmetic_s == pytest.approx(1 / numbers()["depthwise"])


@pytest.mark.parametrize(
    ("parts", "limit"),
    [
        ((2.1, 1.1, 0.9), "launches"),
        ((1.9, 1.1, 0.9), "memory"),
        ((1.9, 0.9, 1.1), "arithmetic"),
    ],
)
def test_a_step_is_limited_by_launches_only_where_they_take_longer_than_all_else(parts, limit):
    assert StepTime(*parts).limit == limit


def test_pytorchs_own_precision_has_convolutions_in_tf32_and_products_in_fp32():
    conv, image = nn.Conv2d(64, 64, 3), torch.empty(1, 64, 56, 56)
    product, row = nn.Linear(4096, 4096), torch.empty(1, 4096)

    def seconds(net, x, card, precision):
        asked = {"batch": 1024, "precision": precision, "training": False}
        return estimate(net, x, devices=[card], **asked).rows[0].step_s

    assert seconds(conv, image, "A100", "default") == seconds(conv, image, "A100", "tf32")
    assert seconds(product, row, "A100", "default") == seconds(product, row, "A100", "fp32")
    for net, x in ((conv, image), (product, row)):  # which has no tf32
        assert seconds(net, x, "V100", "default") == seconds(net, x, "V100", "fp32")


def test_a_host_that_launches_faster_prepares_a_step_faster_by_the_same_factor():
    old, new = cloud_host(find_chip("T4")), cloud_host(find_chip("H100"))
    assert new.launch_s < old.launch_s
    assert new.step_s / new.launch_s == pytest.approx(old.step_s / old.launch_s)
