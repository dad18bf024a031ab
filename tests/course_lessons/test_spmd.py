import pytest
import torch
from course_lessons.tpu import spmd

pytestmark = pytest.mark.process


def train_on_one_device() -> dict[str, torch.Tensor]:
    model, _ = spmd.train(torch.device("xla", 0))
    return {name: value.cpu() for name, value in model.state_dict().items()}


def test_eight_devices_end_with_the_weights_of_one_and_of_the_cpu(in_xla):
    said, result = spmd.on_eight_devices()
    assert "8 devices in 1 process" in said
    assert "(16, 6, 1) is split as {devices=[8,1,1]0,1,2,3,4,5,6,7}" in said
    assert "(1, 20) is split as {replicated}" in said
    assert f"{spmd.STEPS} executed" in said
    eight, one, cpu = (
        result["weights"],
        in_xla(train_on_one_device),
        spmd.train(torch.device("cpu"))[0].state_dict(),
    )
    torch.manual_seed(42)
    start = spmd.AirRNN().state_dict()
    for name, value in eight.items():
        assert torch.allclose(value, one[name], atol=1e-6) and torch.allclose(
            value, cpu[name], atol=1e-6
        )
        assert not torch.allclose(value, start[name], atol=1e-4)
    # together they are the whole tensor, and no two overlap
    for pieces in result["parts"].values():
        held = torch.zeros(spmd.SHAPE)
        for top, bottom, left, right in pieces:
            held[top:bottom, left:right] += 1
        assert len(pieces) == 8 and torch.equal(held, torch.ones(spmd.SHAPE))
    exchanged = [line for line in result["program"] if "all-reduce(" in line]
    assert any("f32[8,4]" in line for line in exchanged), "the gradient is as large as the weight"
    assert any("f32[] all-reduce" in line for line in exchanged), "the loss is one number"


def test_a_run_on_eight_devices_that_fails_says_why(monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "a dog")  # Python itself refuses to start with it
    with pytest.raises(RuntimeError, match="PYTHONHASHSEED"):
        spmd.on_eight_devices()
