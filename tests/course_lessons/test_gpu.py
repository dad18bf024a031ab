"""What lesson 2 brings beside its pictures and exercises."""

import pytest
import torch
import torch.nn.functional as F
from course_lessons.gpu import exercises, own_step
from course_lessons.gpu.own_step import EstimatedStep, StepTimes, fast_half, time_step
from course_lessons.gpu.some_gpu import show_error, some_gpu
from torch import nn

from course_tools.estimate.network import estimate
from course_tools.rehearsal import rehearse
from course_utils.devices import Device
from course_utils.timing import Timing


def test_a_step_is_measured_here_and_leaves_the_model_as_it_is():
    model = nn.Linear(3, 2)
    before = model.weight.clone()
    loader = [(torch.ones(size, 3), torch.zeros(size, dtype=torch.long)) for size in (4, 5)]
    seen = set()

    def loss(outputs, targets):
        seen.add(len(targets))
        return nn.functional.cross_entropy(outputs, targets)

    found = time_step(model, loader, loss, max_s=0.05)
    assert found.seconds["CPU, 32 bits"] > 0 and seen == {4}  # the first batch
    assert torch.equal(model.weight, before)


@pytest.mark.parametrize(
    ("gpu_s", "verdict"),
    [
        (0.01, "X, 32 bits is 10.0 times as fast as the CPU: move"),
        (0.1 / 1.51, "X, 32 bits is 1.5 times as fast as the CPU: move"),
        (0.1 / 1.49, "hardly worth it"),
        (0.2, "The CPU is faster, 2.0 times"),
    ],
)
def test_the_verdict_follows_from_the_times(gpu_s, verdict):
    times = StepTimes({"CPU, 32 bits": 0.1, "X, 32 bits": gpu_s, "X, 16 bits": 2 * gpu_s})
    assert verdict in times.verdict
    assert times.verdict in repr(times)


@pytest.mark.parametrize(
    ("card", "capability", "half"),
    [
        ("V100", (7, 0), torch.float16),
        ("T4", (7, 5), torch.float16),
        ("A100", (8, 0), torch.bfloat16),
        ("RTX 5090", (12, 0), torch.bfloat16),
    ],
)
def test_the_16_bits_are_those_that_the_tensor_cores_multiply(card, capability, half):
    assert fast_half(capability) is half


def test_without_a_gpu_the_verdict_is_an_estimate_for_the_free_card_with_its_interval():
    half = EstimatedStep("T4, 16 bits", 0.002, 0.005, "memory")
    whole = EstimatedStep("T4, 32 bits", 0.004, 0.01, "memory")
    other = EstimatedStep("A100 80GB, 32 bits", 0.001, 0.002, "launches")
    times = StepTimes({"CPU, 32 bits": 0.1}, (whole, half, other))
    assert "no GPU here. Estimated: T4, 16 bits would be 20 to 50 times" in times.verdict
    assert "T4, 32 bits         estimated  4 ms to 10 ms" in repr(times)
    assert "50 to 100" in repr(times) and "e+" not in repr(times)
    wide = EstimatedStep("T4, 16 bits", 0.002, 0.02, "memory")  # its slow end is no better
    assert "T4, 32 bits would be 10 to 25" in StepTimes({"CPU": 0.1}, (wide, whole, other)).verdict
    small = StepTimes({"CPU, 32 bits": 0.004}, (whole,))
    assert "0.4 to 1 times as fast as this CPU, so it may hardly be worth it" in small.verdict
    for cpu_s, doubtful in ((0.0149, True), (0.0151, False)):  # 1.49 and 1.51 times at least
        found = StepTimes({"CPU, 32 bits": cpu_s}, (whole,)).verdict
        assert ("hardly be worth it" in found) == doubtful


def test_a_regression_of_right_shapes_is_not_warned_of_by_the_estimate(recwarn):
    model = nn.Sequential(nn.Linear(8, 1), nn.Flatten(0))
    loader = [(torch.randn(128, 8), torch.randn(128))]
    assert time_step(model, loader, nn.functional.mse_loss, max_s=0.05).estimates
    assert not [str(each.message) for each in recwarn if "target size" in str(each.message)]


def test_the_estimate_is_that_of_the_readers_model_batch_and_loss():
    model = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 10))
    loader = [(torch.ones(32, 64), torch.zeros(32, dtype=torch.long))]
    found = time_step(model, loader, nn.functional.cross_entropy, max_s=0.05)
    names = ["T4, 32 bits", "T4, 16 bits", "A100 80GB, 32 bits", "A100 80GB, 16 bits"]
    assert [one.name for one in found.estimates] == names
    answer = estimate(
        model,
        loader[0][0],
        loss=lambda scores: nn.functional.cross_entropy(scores, loader[0][1]),
        devices=["T4"],
        precision="default",
        samples=32 * 3600,  # 3,600 steps, so that a second of a step is an hour of the job
    )
    first = found.estimates[0]
    assert (first.low_s, first.high_s) == pytest.approx(answer["T4"].hours_interval)


def test_a_batch_of_tokens_in_a_dict_is_timed_and_estimated_as_a_loop_passes_it():
    class Reads(nn.Embedding):
        def forward(self, batch):
            return super().forward(batch["ids"]).mean(1)

    ids = torch.zeros(4, 5, dtype=torch.int64)
    loader = [({"ids": ids, "texts": ["a", "b", "c", "d"]}, torch.zeros(4, dtype=torch.long))]
    found = time_step(Reads(10, 2), loader, nn.functional.cross_entropy, max_s=0.05)
    assert found.estimates and found.seconds["CPU, 32 bits"] > 0


def test_a_time_that_was_disturbed_says_so_first_and_gives_no_factor():
    card = EstimatedStep("T4, 16 bits", 0.002, 0.005, "memory")
    doubt = "CPU, 32 bits: The machine was busy."
    times = StepTimes({"CPU, 32 bits": 0.1}, (card,), doubts=(doubt,))
    shown = repr(times)
    assert shown.startswith(times.verdict) and "run this cell again" in times.verdict
    assert doubt in shown and "100 ms" in shown and "2 ms to 5 ms" in shown
    assert "20 to 50" not in shown and "1.0" not in shown


def test_a_model_that_cannot_be_counted_is_measured_without_an_estimate():
    class Asks(nn.Linear):
        def forward(self, inputs):
            return super().forward(inputs) * float(inputs.sum().item() > 0)

    loader = [(torch.ones(4, 3), torch.zeros(4, dtype=torch.long))]
    found = time_step(Asks(3, 2), loader, nn.functional.cross_entropy, max_s=0.05)
    assert not found.estimates and found.seconds["CPU, 32 bits"] > 0
    assert "run this cell on one. No estimate: " in found.verdict


ON_CPU = {"CPU, 32 bits": torch.float32}
ON_BOTH = ON_CPU | {"X, 32 bits": torch.float32}


@pytest.mark.parametrize(
    ("kind", "capability", "ways"),
    [
        ("cpu", (8, 0), ON_CPU),
        ("mps", (8, 0), ON_BOTH),
        ("cuda", (7, 5), ON_BOTH | {"X, 16 bits": torch.float16}),
        ("cuda", (8, 0), ON_BOTH | {"X, 16 bits": torch.bfloat16}),
    ],
)
def test_a_step_is_measured_in_16_bits_on_cuda_alone_and_scaled_in_float16_alone(
    kind, capability, ways, monkeypatch
):
    here, seen, scaled = Device(kind, 0, "X"), [], []
    cpu = Device("cpu", 0, "a cpu")
    scaler = torch.amp.GradScaler

    def time_once(step, *, device, max_s):
        step()
        step()  # which float16 allows only after an update of its scale
        return Timing(str(device), 1, 0.1, (0.1,) * 3, 1)

    def scaler_of(device, enabled):
        scaled.append(enabled)
        return scaler(device, enabled=enabled)

    monkeypatch.setattr(own_step, "pick_device", lambda name=None: cpu if name else here)
    monkeypatch.setattr(own_step, "time_call", time_once)
    monkeypatch.setattr(own_step, "_estimate", lambda *_: ())
    monkeypatch.setattr(torch.amp, "GradScaler", scaler_of)
    with rehearse("cuda" if kind == "cpu" else kind, capability=capability):
        found = time_step(
            nn.Linear(3, 2),
            [(torch.ones(4, 3), torch.zeros(4, 2))],
            lambda outputs, targets: seen.append(outputs.dtype) or outputs.float().sum(),
        )
    assert list(found.seconds) == list(ways) and seen[::2] == list(ways.values())
    assert scaled == [dtype is torch.half for dtype in ways.values()]


def test_the_gpu_of_the_cells_is_the_real_one_or_else_a_simulated_t4(monkeypatch):
    with some_gpu() as device:  # a T4 has 16 GB and the compute capability 7.5
        assert torch.ones(1, device=device).device.type == "cuda"
        card = torch.cuda.get_device_properties(0)
        assert (card.total_memory, card.major, card.minor) == (16 * 10**9, 7, 5)
    here = torch.device("mps")
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: here)
    with some_gpu() as device:
        assert device is here and not torch.cuda.is_available()


# what PyTorch 2.9 says of cuda:99 on a machine with fewer GPUs, in its own lines
NO_SUCH_GPU = """CUDA error: invalid device ordinal
GPU device may be out of range, do you have enough GPUs?
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
"""


def test_an_error_is_shown_by_its_kind_and_the_line_that_says_what_is_wrong(capsys):
    def ask_for_a_gpu_too_many():
        raise RuntimeError(NO_SUCH_GPU)

    show_error(lambda: torch.ones(2) @ torch.ones(3))
    show_error(lambda: None)
    show_error(ask_for_a_gpu_too_many)
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.startswith("RuntimeError: inconsistent tensor size") and second == "no error"
    assert third == "RuntimeError: CUDA error: invalid device ordinal"


@pytest.mark.parametrize("name", ["busy", "moves"])
def test_an_exercise_simulates_a_gpu_also_beside_a_real_one(name, monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    one = getattr(exercises, name)
    names = {"F": F, "nn": nn, "torch": torch}
    exec(str(one.solution()), names)
    verdict = one.check(names["my_epoch" if name == "busy" else "my_network"])
    assert verdict.status == "right", verdict
