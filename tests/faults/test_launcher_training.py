"""What a launch computes: the same from a checkpoint as without a break, and the same on one device
as on two.
"""

import json
import subprocess
import sys

import pytest
import torch
from launches import ENVIRONMENT, PATIENCE_S

CPU = ("--accelerator", "cpu", "--strategy", "ddp_notebook")


def launch(out, *arguments):
    command = [
        sys.executable,
        "-m",
        "course_utils.launch",
        "--lesson",
        "air_rnn",
        "--out",
        str(out),
        "--json",
    ]
    result = subprocess.run(
        [*command, *arguments], env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout), torch.load(
        out / "checkpoints" / "last.ckpt", weights_only=True
    )


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return launch(tmp_path_factory.mktemp("whole"), "--devices", "2", "--epochs", "6", *CPU)


def largest_difference(state, other):
    pairs = zip(state["state_dict"].values(), other["state_dict"].values(), strict=True)
    return max((one - two).abs().max().item() for one, two in pairs)


def test_a_resumed_run_continues_at_its_step_and_ends_with_the_same_weights(
    uninterrupted, tmp_path
):
    result, state = uninterrupted
    half, _ = launch(tmp_path, "--devices", "2", "--epochs", "2", *CPU)
    assert half["steps"] == 12 and half["losses"] == pytest.approx(result["losses"][:2], abs=1e-6)
    resumed, resumed_state = launch(tmp_path, "--devices", "2", "--epochs", "6", "--resume", *CPU)
    assert resumed["steps"] == result["steps"] == 36
    assert resumed["losses"] == pytest.approx(result["losses"], abs=1e-6)
    assert largest_difference(resumed_state, state) <= 1e-6
    again, _ = launch(tmp_path, "--devices", "2", "--epochs", "6", "--resume", *CPU)
    assert again["steps"] == 36 and again["samples_per_rank"] == [], "nothing was left to do"


def test_one_device_at_the_same_global_batch_ends_with_the_same_weights(uninterrupted, tmp_path):
    result, state = uninterrupted
    alone, alone_state = launch(tmp_path, "--devices", "1", "--epochs", "6", "--accelerator", "cpu")
    assert result["samples_per_rank"] == [48, 48] and alone["samples_per_rank"] == [96]
    assert alone["losses"] == pytest.approx(result["losses"], rel=1e-5)
    assert 0 <= largest_difference(alone_state, state) < 1e-5
    assert largest_difference(alone_state, {"state_dict": torch_default_weights()}) > 1e-2, (
        "both have learned"
    )
    assert json.loads((tmp_path / "result.json").read_text()) == alone


OWN_TRAINER = """
import pytorch_lightning
from course_utils.launch.lessons import air_rnn

def lesson():
    pytorch_lightning.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False)
    return air_rnn()
"""


def test_a_lesson_may_make_a_trainer_of_its_own_with_the_other_lightning(tmp_path):
    pytest.importorskip("lightning")
    pytest.importorskip("pytorch_lightning")
    file = tmp_path / "own.py"
    file.write_text(OWN_TRAINER)
    command = [
        sys.executable,
        "-m",
        "course_utils.launch",
        "--lesson",
        f"{file}:lesson",
        "--out",
        str(tmp_path),
    ]
    command += ["--accelerator", "cpu", "--devices", "1", "--epochs", "1"]
    result = subprocess.run(
        command, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert result.returncode == 0, result.stdout + result.stderr


def torch_default_weights():
    from course_utils.data.models import AirRNN

    torch.manual_seed(42)
    return AirRNN().state_dict()
