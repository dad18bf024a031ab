"""Comparisons: first the answers, then the times."""

import math
from contextlib import nullcontext

import pytest
import torch
from course_lessons.device_speed.image_step import CNN_STEP, SUITE
from measured import measured
from torch.overrides import TorchFunctionMode

from course_tools.compare import comparison as comparison_module
from course_tools.compare.comparison import (
    Contestant,
    WrongAnswer,
    compare_devices,
    contestants,
    cpu_first,
    measure,
)
from course_tools.compare.measurement import Measurement
from course_tools.compare.results import Result
from course_tools.compare.workloads import ELEMENTWISE, PRODUCT, Workload, build_seeded
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


def row(size: int, label: str, *rounds_s: float, kind: str = "cpu", **more) -> Measurement:
    known = {"workload": "Work", "label": label, "kind": kind, "device": "d"}
    return measured(*rounds_s, size=size, **known | more)


def comparison(*rows: Measurement) -> Result:
    return Result(rows, date="2026-11-20")


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


@pytest.mark.parametrize("work", SUITE, ids=[work.name for work in SUITE])
def test_every_workload_answers_alike_in_every_precision_that_it_knows(work):
    for precision in work.precisions:
        found = compare_devices(work, [8], ["cpu"], precision=precision, max_s=0.01)
        assert len(found.measurements) == len(contestants(["cpu"]))


def test_none_is_the_best_device_and_not_all_of_them(monkeypatch):
    monkeypatch.setenv("COURSE_DEVICE", "cpu")
    assert contestants(None) == contestants("cpu")
    found = compare_devices(PRODUCT, [8], None, max_s=0.01)
    assert {one.kind for one in found.measurements} == {"cpu"}


def test_the_workloads_compute_what_they_say():
    left, right = torch.randn(5, 5), torch.randn(5, 5)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        left, right = torch.randn(5, 5), torch.randn(5, 5)
    assert torch.allclose(
        build_seeded(PRODUCT, 5, CPU, "fp32")(), (left.double() @ right.double()).float()
    )
    assert PRODUCT.items(10) == 2000
    with torch.random.fork_rng():
        torch.manual_seed(0)
        a, b = torch.randn(6), torch.randn(6)
    assert torch.allclose(build_seeded(ELEMENTWISE, 6, CPU, "fp32")(), a + 2 * b)
    halves = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    for work in (PRODUCT, ELEMENTWISE):
        assert {name: build_seeded(work, 2, CPU, name)().dtype for name in halves} == halves


def test_the_cpu_takes_part_with_one_thread_and_with_all():
    threads = torch.get_num_threads()
    found = compare_devices(ELEMENTWISE, [64], ["cpu", "cpu"], max_s=0.01)
    assert found.labels == [Contestant(CPU, number).label for number in sorted({1, threads})]
    assert [one.threads for one in found.measurements] == sorted({1, threads})


def test_a_function_of_your_own_is_compared():
    def outer(size, device):
        values = torch.arange(size, dtype=torch.float32, device=device)
        return lambda: values[:, None] * values

    found = compare_devices(outer, [4, 16], ["cpu"], max_s=0.01)
    assert (found.work.workload, found.sizes, found.work.unit) == ("outer", (4, 16), "calls")
    assert all(line.rate == pytest.approx(1 / line.median_s) for line in found.measurements)


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


def test_a_function_that_does_the_work_instead_of_returning_it_is_refused():
    wrong = r"workload 'at_once' returned Tensor, but .* a function without"
    with pytest.raises(TypeError, match=wrong) as refused:
        compare_devices(at_once, [4], ["cpu"])
    example = {"torch": torch}  # the one in the message runs
    exec(str(refused.value).partition("such as: ")[2], example)
    assert compare_devices(example["work"], [4], ["cpu"], max_s=0.01).work.workload == "work"


def at_once(size, device):
    return torch.ones(size, device=device)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"sizes": [1], "precision": "fp8"},
            "requested in precision 'fp8', but it knows fp32, tf32, bf16, fp16",
        ),
        (
            {"sizes": [1], "devices": ["cpu"], "max_s": 0},
            "needs work and a positive time, but got . works, max_s=0",
        ),
        ({"sizes": [1], "devices": []}, "devices is empty"),
    ],
)
def test_requests_that_cannot_be_met_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        compare_devices(PRODUCT, **arguments)


def test_tf32_is_a_precision_of_a_function_of_your_own_too():
    seen = []

    def ones(size, device):
        backend = torch.backends.cuda.matmul
        now = backend.fp32_precision if hasattr(backend, "fp32_precision") else backend.allow_tf32
        seen.append(now in ("tf32", True))
        return lambda: torch.ones(size, device=device)

    for precision in ("fp32", "tf32"):
        seen.clear()
        compare_devices(ones, [4], ["cpu"], precision=precision, max_s=0.01)
        measure("cpu", Workload.of(ones), 4, precision, max_s=0.01)
        assert set(seen) == {precision == "tf32"}


def test_of_all_devices_the_cpu_is_the_first_since_the_others_are_held_against_it(monkeypatch):
    monkeypatch.setattr("course_tools.compare.comparison.find_devices", lambda: [GPU, CPU])
    assert cpu_first() == [CPU, GPU]


def test_the_callers_settings_stay_as_they_were():
    torch.manual_seed(5)
    before = torch.get_num_threads(), torch.get_rng_state().tolist()
    compare_devices(CNN_STEP, [4], ["cpu"], max_s=0.01)
    assert (torch.get_num_threads(), torch.get_rng_state().tolist()) == before


def line(label, *seconds, kind="cpu"):
    """Return the rows of a contestant that takes so many seconds at the sizes 1, 2, 4, ..."""
    return [row(2**step, label, *[each] * 8, kind=kind) for step, each in enumerate(seconds)]


ONE_THREAD = line("cpu, 1 thread", 1.0, 2.0, 4.0, 8.0)
TWO_THREADS = line("cpu, 2 threads", 2.0, 4.0, 8.0, 16.0)


@pytest.mark.parametrize(
    ("lines", "verdict"),
    [
        ([ONE_THREAD], ""),
        ([ONE_THREAD, line("cuda:0", 3, 3, 3, 3, kind="cuda")], "cuda:0: faster at 4 and above"),
        # over both numbers of threads, of which one thread is the better one here
        (
            [ONE_THREAD, TWO_THREADS, line("cuda:0", 3, 3, 3, 3, kind="cuda")],
            "cuda:0: faster at 4 and above",
        ),
        # faster in between, and not in the end
        ([ONE_THREAD, line("cuda:0", 3, 1, 1, 9, kind="cuda")], "cuda:0 does not win at 8"),
        ([TWO_THREADS, ONE_THREAD], "cpu, 1 thread: faster at every size"),
        (
            [line(f"cuda:{n}", s, kind="cuda") for n, s in enumerate((2, 1))],
            "cuda:1: faster at every size",
        ),
        # of two accelerators, the faster one
        (
            [
                ONE_THREAD,
                line("mps:0", 9, 9, 9, 9, kind="mps"),
                line("cuda:0", 3, 3, 3, 3, kind="cuda"),
            ],
            "cuda:0: faster at 4 and above",
        ),
        # of two accelerators the one that is faster at the largest size, not at the smallest
        (
            [
                ONE_THREAD,
                line("mps:0", 0.5, 0.5, 7, 7, kind="mps"),
                line("cuda:0", 3, 3, 3, 3, kind="cuda"),
            ],
            "cuda:0: faster at 4 and above",
        ),
    ],
)
def test_the_verdict_says_from_where_on_one_is_faster_for_good(lines, verdict):
    assert comparison(*(one for line in lines for one in line)).verdict() == verdict


@pytest.mark.parametrize("size", [64, 65_536, 99_999, 131_072, 262_144, 2**24, 2**30])
def test_the_verdict_fits_into_a_title_at_any_size(size):
    label = "xla:0 (rehearsal)"
    rows = [row(1, "cpu", *[1.0] * 8), row(size, "cpu", *[2.0] * 8)]
    rows += [row(1, label, *[2.0] * 8, kind="xla"), row(size, label, *[1.0] * 8, kind="xla")]
    verdict = comparison(*rows).verdict()
    assert "faster at" in verdict and len(verdict) <= 45
    assert (f"{size:,}" in verdict) == (size < 100_000)


def test_a_lead_within_the_noise_is_no_lead():
    noisy = (0.5, 1.5, 0.6, 1.4, 0.7, 1.3, 0.4, 1.2)
    found = comparison(row(1, "cpu, 1 thread", *[1.0] * 8), row(1, "cuda:0", *noisy, kind="cuda"))
    assert found.verdict() == "cuda:0 does not win at 1"


@pytest.mark.parametrize(("lead", "wins"), [(1.002, False), (1.004, False), (1.01, True)])
def test_a_lead_that_equal_calls_can_have_is_no_lead_however_little_noise_there_is(lead, wins):
    found = comparison(
        row(1, "cpu, 1 thread", *[lead] * 40), row(1, "cuda:0", *[1.0] * 40, kind="cuda")
    )
    assert ("faster at every size" in found.verdict()) == wins


def test_who_is_faster_is_decided_round_by_round():
    # Both slow down tenfold from round to round; within a round one is always twice as fast.
    assert Result().verdict() == ""  # of nothing
    found = comparison(row(1, "slow", 2.0, 20.0, 200.0), row(1, "fast", 1.0, 10.0, 100.0))
    assert list(found.to_frame()["95% interval"]) == ["1.00 to 1.00", "2.00 to 2.00"]
    assert found.verdict() == "fast: faster at every size"


def test_a_frame_has_one_line_for_each_size_and_contestant():
    frame = comparison(row(2, "slow", 2.0, 2.0), row(2, "fast", 0.5, 0.5)).to_frame()
    assert list(frame["device"]) == ["slow", "fast"]
    assert list(frame["median ms"]) == [2000.0, 500.0]
    assert list(frame["samples/s"]) == [1.0, 4.0]
    assert list(frame["times slow"]) == [1.0, 4.0]
    assert list(frame["reliable"]) == [True, True]


def test_the_middle_half_of_the_rates_is_that_of_the_times():
    assert row(6, "cpu", 1.0, 2.0, 3.0, 4.0, 5.0).rate_quartiles == (6 / 4, 6 / 2)
    assert row(6, "cpu", 3.0).rate_quartiles == (2, 2)


def test_contestants_of_unlike_sizes_have_a_verdict_and_a_frame():
    cpu = [row(size, "cpu, 1 thread", 2.0, 2.0) for size in (1, 2)]
    gpu = [row(size, "cuda:0", 1.0, 1.0, kind="cuda") for size in (2, 4)]
    found = comparison(*cpu, *gpu)
    assert found.verdict() == "cuda:0 does not win at 4"  # nobody else was measured there
    times = found.to_frame().set_index(["device", "batch"])["times cpu, 1 thread"]
    assert times["cuda:0", 2] == 2.0 and math.isnan(times["cuda:0", 4])


REHEARSAL = Device("xla", 0, "XLA on this CPU", rehearsal=True)
TPU = Device("xla", 0, "TPU v5e")


def test_the_rehearsal_takes_part_only_where_it_is_named(monkeypatch):
    monkeypatch.setattr(comparison_module, "find_devices", lambda: [CPU, REHEARSAL])
    assert {one.device for one in contestants()} == {CPU}


def test_all_devices_are_compared_after_a_backward_pass_too():
    torch.ones(1, requires_grad=True).sum().backward()
    found = compare_devices(lambda size, device: lambda: torch.ones(size), [1], max_s=0.01)
    assert not any("rehearsal" in label for label in found.labels)


def test_a_tpu_that_can_no_longer_be_started_is_left_out_with_a_warning(monkeypatch):
    def too_late():
        raise RuntimeError("XLA was started too late")

    monkeypatch.setattr(comparison_module, "find_devices", lambda: [TPU, CPU])
    monkeypatch.setattr(comparison_module, "start_xla", too_late)
    with pytest.warns(UserWarning, match="the TPU takes no part: XLA was started too late"):
        assert {one.device for one in contestants()} == {CPU}
    monkeypatch.setattr(comparison_module, "as_device", lambda device: TPU)
    with pytest.raises(RuntimeError, match="too late"):
        contestants(["xla"])


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

    entrant = Contestant(pick_device("xla"), 1)
    comparison_module._answers(Workload.of(work), 8, entrant, "fp32")
    step = build_seeded(Workload.of(work), 8, entrant.device, "fp32")
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


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (lambda size: torch.ones, r"takes \(size\), but is called as work\(size, device\)"),
        (lambda device, size: torch.ones, r"takes \(device, size\): swap them"),
        (Workload("w", lambda size: torch.ones), r"is called as build\(device=\.\.\., size="),
        (3, "'int' is no workload: pass a function"),
        (Workload("w", lambda **asked: lambda: {1}), r"'w' answered with set\. Return a tensor"),
    ],
)
def test_work_with_other_parameters_or_answers_is_refused_in_words(work, words):
    with pytest.raises(TypeError, match=words):
        compare_devices(work, [1], "cpu", max_s=0.01)


@pytest.mark.parametrize("sizes", [[], [0], [1, -2], [1.5], 0, ["8"]])
def test_sizes_that_are_none_are_refused(sizes):
    with pytest.raises(ValueError, match="it has to list whole numbers of at least 1"):
        compare_devices(PRODUCT, sizes, "cpu")
