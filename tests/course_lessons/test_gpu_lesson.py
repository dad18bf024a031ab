"""What lesson 2 brings beside its pictures and exercises."""

import pytest
import torch
from course_lessons.gpu.own_step import StepTimes, fast_half, time_step
from course_lessons.gpu.saved_on_a_gpu import saved_on_a_gpu
from torch import nn


def test_a_step_is_measured_here_and_leaves_the_model_as_it_is():
    model = nn.Linear(3, 2)
    before = model.weight.clone()
    loader = [(torch.ones(4, 3), torch.zeros(4, dtype=torch.long))]
    found = time_step(model, loader, nn.functional.cross_entropy, max_s=0.05)
    assert found.seconds["CPU, fp32"] > 0
    assert torch.equal(model.weight, before)


@pytest.mark.parametrize(
    ("gpu_s", "verdict"),
    [
        (0.01, "X, fp32 is 10.0 times as fast as the CPU: move"),
        (0.08, "hardly worth it"),
        (0.2, "The CPU is faster, 2.0 times"),
    ],
)
def test_the_verdict_follows_from_the_times(gpu_s, verdict):
    times = StepTimes({"CPU, fp32": 0.1, "X, fp32": gpu_s, "X, 16 bits": 2 * gpu_s})
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


def test_without_a_gpu_the_verdict_says_where_to_go_on():
    assert "no GPU here" in StepTimes({"CPU, fp32": 0.1}).verdict


def test_a_file_saved_on_a_gpu_needs_a_map_location_on_a_machine_without(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    file = saved_on_a_gpu({"weight": torch.arange(3.0)})
    with pytest.raises(RuntimeError, match="map_location"):
        torch.load(file)
    file.seek(0)
    assert torch.load(file, map_location="cpu")["weight"].tolist() == [0, 1, 2]
