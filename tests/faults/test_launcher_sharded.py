"""FSDP under the launcher: the same training as with DDP, and the same ends of what goes wrong."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest
import torch
from launches import ENVIRONMENT, PATIENCE_S

CPU = ("--accelerator", "cpu", "--devices", "2")
TWO = (*CPU, "--epochs", "4", "--strategy", "fsdp")


def launch(out, *arguments):
    command = [sys.executable, "-m", "course_utils.launch", "--lesson", "air_rnn", "--out", str(out), "--json"]
    done = subprocess.run([*command, *arguments], env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE_S)
    return done.returncode, json.loads(done.stdout or "null"), done.stderr


def weights(out, key="state_dict"):
    return torch.load(out / "checkpoints" / "last.ckpt", weights_only=True)[key]


@pytest.fixture(scope="module")
def with_ddp(tmp_path_factory):
    out = tmp_path_factory.mktemp("ddp")
    return out, launch(out, *CPU, "--epochs", "4", "--strategy", "ddp_notebook")[1]


def test_losses_and_weights_are_those_of_ddp_and_each_goes_on_with_the_others_checkpoint(with_ddp, tmp_path):
    out, expected = with_ddp
    _, half, _ = launch(tmp_path, *CPU, "--epochs", "2", "--strategy", "fsdp")
    assert half["losses"] == pytest.approx(expected["losses"][:2], abs=1e-5) and half["steps"] == 12
    assert half["samples_per_rank"] == [48, 48] and half["metrics"]["train_loss"] > 0
    for strategy, epochs, steps in (("ddp_notebook", 3, 12), ("fsdp", 4, 18)):
        _, resumed, said = launch(tmp_path, *CPU, "--epochs", str(epochs), "--strategy", strategy, "--resume")
        assert f"continuing after step {steps}" in said and resumed["steps"] == steps + 6
    assert resumed["losses"] == pytest.approx(expected["losses"], abs=1e-5)
    ours, theirs = weights(tmp_path), weights(out)
    assert ours.keys() == theirs.keys()
    assert max((ours[name] - theirs[name]).abs().max().item() for name in ours) < 1e-5


LIKE_A_MAC = """
import torch
from torch.utils.data import TensorDataset
from course_utils.training import Regression
torch._C._get_accelerator = lambda *_: torch.device("mps")
def make_lesson(): return Regression(torch.nn.Linear(1, 1)), TensorDataset(torch.ones(8, 1), torch.ones(8, 1))
"""


def test_on_a_cpu_beside_a_gpu_that_cannot_be_hidden_the_ranks_share_the_cpus_memory(tmp_path):
    """Stand-in: torch's answer on a Mac, whose torch.mps lacks what FSDP asks of an accelerator."""
    (tmp_path / "mac.py").write_text(LIKE_A_MAC)
    lesson = ("--lesson", str(tmp_path / "mac.py:make_lesson"))
    status, result, said = launch(tmp_path / "out", *TWO, *lesson)
    assert status == 0 and result["samples_per_rank"] == [4, 4], said


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("raise", "launch: rank 1 raised ValueError: the sample is bad"),
        ("exit quietly", "rank 1 ended with exit status 0"),
        ("hang", "rank 1 has been silent"),
    ],
)
def test_a_fault_of_a_rank_ends_all_and_names_it(classroom, fault, message):
    limit = ("--timeout", "3") if fault == "hang" else ()
    status, output = classroom.run(*TWO, *limit, fault=fault)
    assert status == 1 and message in output and "--resume continues from it" in output
    assert fault != "raise" or output[: output.index("Traceback")].endswith("[rank 1] ")
    assert not (classroom.out / "result.json").exists() and classroom.left_behind() == []


def test_a_killed_rank_is_named(classroom):
    process = classroom.launch(*TWO, fault="wait to be killed")
    classroom.wait_for_note("fault")
    os.kill(int(classroom.wait_for_note("pid-1")), signal.SIGKILL)
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1 and "launch: rank 1 was killed by signal 9 (SIGKILL)" in output
    assert classroom.left_behind() == [] and weights(classroom.out, "global_step") == 4


def test_all_ends_when_the_launcher_is_killed_and_the_run_can_be_resumed(classroom):
    process = classroom.launch(*TWO, "--epochs", "200", "--num-workers", "1", fault="slow")
    classroom.wait_for_note("pid-1")
    process.kill()  # which is harder than Ctrl-C: nobody tells the ranks
    assert classroom.seconds_until_all_ended(10) < 10, classroom.left_behind()
    process.communicate(timeout=PATIENCE_S)
    step = weights(classroom.out, "global_step")
    status, output = classroom.run(*TWO, "--epochs", str(step // 4 + 1), "--resume")
    assert status == 0 and f"continuing after step {step}" in output, output


def test_a_full_disk_is_named_and_the_previous_checkpoint_stays_whole(classroom, small_disk, one_epoch):
    shutil.copytree(one_epoch, small_disk, dirs_exist_ok=True)
    before = (small_disk / "checkpoints" / "last.ckpt").read_bytes()
    with (small_disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="No space"):
        while True:
            filler.write(b"0" * 512)
    status, output = classroom.run(*TWO, "--resume")
    assert status == 1 and "launch: rank 0 raised OSError" in output and "no space for the checkpoint" in output
    assert (small_disk / "checkpoints" / "last.ckpt").read_bytes() == before and classroom.left_behind() == []


def test_a_run_out_of_memory_ends_with_the_estimate_beside_the_error(classroom):
    status, output = classroom.run(*CPU, "--epochs", "4", "--strategy", "fsdp", fault="memory")
    assert status == 1 and "can't allocate memory" in output
    last = output[output.index("launch: rank 1 raised RuntimeError") :]
    assert "Estimated need of a step:" in last and "activations at 4 samples in each rank" in last
    assert classroom.left_behind() == []
