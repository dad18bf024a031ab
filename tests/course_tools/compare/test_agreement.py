"""Answers are compared before anything is timed."""

import math
from contextlib import nullcontext

import pytest
import torch
from torch.overrides import TorchFunctionMode

from course_tools.compare import agreement
from course_tools.compare.agreement import WrongAnswer
from course_tools.compare.comparison import compare_devices
from course_tools.compare.contestants import Contestant
from course_tools.compare.workloads import ELEMENTWISE, Workload, build_seeded
from course_utils.devices import Device, pick_device, wait_for
from course_utils.timing import time_call, using_threads
from course_utils.xla import xla_counters

CPU = Device("cpu", 0, "a cpu")
GPU = Device("cuda", 0, "a gpu of this test")


@pytest.fixture
def gpu(monkeypatch):
    """A device that PyTorch waits for, and whose work is done by whatever a test builds."""
    monkeypatch.setattr(torch.accelerator, "synchronize", lambda device: None)
    return GPU


def answering(on_cpu, on_gpu) -> Workload:
    """Return work that answers with these values, one call after another, on either device."""

    def build(size, device, precision):
        answers = iter([*(on_gpu if device.kind == "cuda" else on_cpu)] + [0.0] * 10**6)
        return lambda: torch.tensor(next(answers))

    return Workload("Answer", build, precisions=("fp32", "bf16", "fp16", "tf32"))


def test_a_wrong_answer_stops_the_comparison_and_says_which(gpu):
    work = answering(on_cpu=[2.0, 2.0], on_gpu=[2.0, 2.5])
    message = (
        r"cuda:0 disagrees with cpu, 1 thread in fp32 on 'Answer' with size 7: they differ by 0.25 "
        r"of the largest value, but rounding in fp32 explains only 2e-05. Nothing was timed."
    )
    with pytest.raises(WrongAnswer, match=message):
        compare_devices(work, [7], [CPU, gpu], max_s=0.01)


def test_one_wrong_number_among_right_ones_is_wrong_by_its_share_of_the_largest(gpu):
    work = answering(on_cpu=[[4.0, 1.0]] * 2, on_gpu=[[4.0, 1.0], [4.0, 2.0]])
    with pytest.raises(WrongAnswer, match=r"differ by 0\.25 of the largest"):
        compare_devices(work, [1], [gpu], max_s=0.01)


def test_nothing_is_timed_before_all_answers_are_checked(gpu):
    timed = []

    def build(size, device, precision):
        calls = iter(range(10**6))

        def fn():
            if next(calls) >= 2:
                timed.append(size)
            return torch.tensor(float(device.kind == "cuda" and size == 9))

        return fn

    with pytest.raises(WrongAnswer, match="with size 9"):
        compare_devices(Workload("Late", build), [1, 9], [CPU, gpu], max_s=0.01)
    assert timed == []


@pytest.mark.parametrize("wrong", [math.nan, math.inf, [2.0, 2.0]])
def test_nan_infinity_and_another_shape_are_wrong(gpu, wrong):
    with pytest.raises(WrongAnswer):
        compare_devices(answering([2.0, 2.0], [wrong, wrong]), [1], [gpu], max_s=0.01)


@pytest.mark.parametrize(
    ("precision", "error", "right"),
    [
        ("fp32", 1e-5, True),
        ("fp32", 1e-4, False),
        ("bf16", 0.02, True),
        ("bf16", 0.05, False),
        ("tf32", 0.009, True),
        ("tf32", 0.011, False),
        ("fp16", 0.009, True),
        ("fp16", 0.02, False),
    ],
)
def test_each_precision_has_its_tolerance(gpu, precision, error, right):
    work = answering([1e-6, 1e-6], [1e-6, (1.0 + error) * 1e-6])  # a share, of small values too
    with nullcontext() if right else pytest.raises(WrongAnswer):
        compare_devices(work, [1], [gpu], precision=precision, max_s=0.01)


class LikeMPS(TorchFunctionMode):
    """Stand-in for a device without float64: a copy from it cannot convert on the way."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        given = [*args, *(kwargs or {}).values()]
        if (
            func is torch.Tensor.to
            and torch.float64 in given
            and any(isinstance(one, str) for one in given)
        ):
            raise TypeError(
                "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't "
                "support float64."
            )
        return func(*args, **(kwargs or {}))


def test_answers_are_compared_in_float64_also_where_a_device_has_none():
    with LikeMPS():
        assert compare_devices(ELEMENTWISE, [16], ["cpu"], max_s=0.01).measurements


def compiled_under_the_timer() -> int:
    def work(size, device):
        weight = torch.ones(size, device=device, requires_grad=True)
        sgd = torch.optim.SGD([weight], 0.1)

        def step():
            sgd.zero_grad()
            loss = weight.square().sum()
            loss.backward()
            sgd.step()
            return loss

        return step

    contestant = Contestant(pick_device("xla"), 1)
    agreement._answers(Workload.of(work), 8, contestant, "fp32")
    step = build_seeded(Workload.of(work), 8, contestant.device, "fp32")
    wait_for("xla")
    before = xla_counters()
    time_call(step, device="xla", max_s=0.05)
    return (xla_counters() - before).compilations


def test_xla_compiles_for_the_check_what_is_timed_later(in_xla):
    assert in_xla(compiled_under_the_timer) == 0


@pytest.mark.parametrize(
    "answer",
    [0.5, 3, {"loss": torch.ones(()), "right": 2}, (torch.ones(2), [torch.ones(3)]), torch.ones(0)],
)
def test_an_answer_may_be_a_number_or_a_nest_of_tensors(answer):
    work = Workload("work", lambda **asked: lambda: answer)
    assert compare_devices(work, [1], ["cpu"], max_s=0.01).measurements


def test_each_part_of_a_nested_answer_is_compared(gpu):
    def build(size, device, precision):
        return lambda: {"loss": 1.0, "accuracy": 0.5 if device.kind == "cpu" else 0.25}

    with pytest.raises(WrongAnswer, match=r"differ by 0\.5 of the largest"):
        compare_devices(Workload("work", build), [1], [gpu], max_s=0.01)


def test_work_without_an_answer_is_timed_with_a_warning_that_nothing_was_compared():
    work = Workload("work", lambda **asked: lambda: None)
    with pytest.warns(UserWarning, match="nobody knows whether the devices agree"):
        assert compare_devices(work, [1], "cpu", max_s=0.01).measurements


def test_numbers_that_a_device_draws_otherwise_get_the_advice_what_to_do(gpu):
    with pytest.raises(WrongAnswer, match="set dropout=0 for the comparison"):
        compare_devices(answering([0.1, 0.2], [0.7, 0.4]), [1], [CPU, gpu], max_s=0.01)


class Lstm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(8, 8, 2, dropout=0.2)

    def forward(self, x):
        return self.lstm(x)[0]


NETWORKS = {
    "dropout": lambda: torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5)),
    "transformer": lambda: torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1),
    "lstm": Lstm,
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_with_dropout_draws_the_same_masks_for_each_contestant(name):
    def work(size, device):
        network = NETWORKS[name]().to(device)
        sgd = torch.optim.SGD(network.parameters(), 0.1)

        def step():
            loss = network(torch.rand(4, size, 8, device=device)).square().mean()
            loss.backward()
            sgd.step()
            return loss

        return step

    with using_threads(2):
        found = compare_devices(work, [4], "cpu", max_s=0.01)
    assert [one.threads for one in found.measurements] == [1, 2]


def test_each_call_that_is_checked_draws_numbers_of_its_own_and_each_contestant_the_same():
    drawn = []

    def work(size, device):
        return lambda: drawn.append(torch.rand(1).item()) or torch.zeros(1)

    compare_devices(work, [1], "cpu", max_s=0.01)
    assert drawn[0] != drawn[1] and drawn[2:4] == drawn[:2]
