"""Launches with two real ranks on the CPU: what they train, how they end, and what they leave."""

import os
import signal
import subprocess
import sys
import time
import uuid
from contextlib import suppress

import psutil
import pytest
import torch

from course_utils import RunError, run_training

ENDED_S = 90  # patience, not a promise: a busy machine takes its time
TRAININGS = """
import os, pathlib, subprocess, time
import torch
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler
from course_lessons.sample_training import air_rnn
from course_lessons.lightning_training import Regression

class Slow(Regression):
    def training_step(self, batch, index):
        time.sleep(0.02)
        return super().training_step(batch, index)

class Faulty(Regression):
    def training_step(self, batch, index):
        if self.trainer.global_rank == 1 and self.current_epoch == 1:
            raise ValueError("the data of rank 1 are broken")
        return super().training_step(batch, index)

class Quiet(Regression):
    def training_step(self, batch, index):
        if index == 20:  # the warnings of the first steps, which need an open pipe, are over
            pathlib.Path(os.environ["STARTED"]).touch()
        time.sleep(0.02)
        return super().training_step(batch, index)

def slow():
    module, loader = air_rnn()
    return Slow(module.model), loader

def faulty():
    module, loader = air_rnn()
    return Faulty(module.model), loader

def quiet():
    data = TensorDataset(torch.zeros(1_000_000, 2), torch.zeros(1_000_000, 1))
    return Quiet(torch.nn.Linear(2, 1)), DataLoader(data, batch_size=2)

def drawing():
    subprocess.Popen(["sleep", "1000"])
    numbers = torch.Generator().manual_seed(1)
    data = TensorDataset(torch.rand(64, 8, generator=numbers), torch.rand(64, 1))
    model = torch.nn.Sequential(torch.nn.Linear(8, 1), torch.nn.Dropout(0.5))
    sampler = WeightedRandomSampler(torch.ones(64), 64)
    return Regression(model), DataLoader(data, batch_size=8, sampler=sampler, num_workers=1)
"""


@pytest.fixture
def own(tmp_path):
    """The file with the trainings of these tests."""
    path = tmp_path / "random.py"  # which is also the name of a module of Python
    path.write_text(TRAININGS)
    return path


def family(mark):
    """The processes that have inherited this value of the variable FAMILY, and still run."""
    members = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("FAMILY") == mark and process.status() != "zombie":
                members.append(process)
    return members


def command_line(process):
    with suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


class Launch:
    """A long training by the command, after its second epoch, or after a step if it is quiet."""

    def __init__(self, training, out):
        started = out.with_name("started")
        self.mark = uuid.uuid4().hex
        options = ["--training", training, "--count", "2", "--accelerator", "cpu"]
        options += ["--strategy", "ddp", "--epochs", "1000", "--out", str(out)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "course_utils.launch", *options],
            env=os.environ | {"FAMILY": self.mark, "STARTED": str(started)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        while training.endswith(":quiet") and self.process.poll() is None:
            if started.exists():
                return
            time.sleep(0.05)
        printed = []
        for line in self.process.stdout:
            printed.append(line)
            if line.startswith("epoch 2/1000"):
                return
        pytest.fail("it did not train: " + "".join(printed))

    def starter(self):
        """The process that starts the ranks."""
        return next(one for one in family(self.mark) if "child.py" in command_line(one))

    def ranks(self):
        """The processes that the server of ranks has forked."""
        forked = [one for one in family(self.mark) if "forkserver" in command_line(one)]
        numbers = {one.pid for one in forked}
        return sorted((one for one in forked if one.ppid() in numbers), key=lambda one: one.pid)

    def end(self):
        """Return its exit status and the rest of its output, and what still runs afterwards."""
        deadline = time.monotonic() + ENDED_S
        while (left := family(self.mark)) and time.monotonic() < deadline:
            time.sleep(0.05)
        for process in left:
            process.kill()
        output, _ = self.process.communicate()
        return self.process.returncode, output, [command_line(one) for one in left]


@pytest.fixture
def launched(own, tmp_path):
    launch = Launch(f"{own}:slow", tmp_path / "out")
    yield launch
    for process in family(launch.mark):
        process.kill()
    launch.process.stdout.close()
    launch.process.wait()


def epochs_in(out):
    return torch.load(out / "last.ckpt", weights_only=True)["epoch"] + 1


@pytest.mark.slow
def test_a_rank_that_raises_is_shown_with_its_traceback(own, tmp_path, capsys):
    out = tmp_path / "out"
    with pytest.raises(RunError, match="rank 1 raised ValueError: the data of rank 1 are broken"):
        run_training(f"{own}:faulty", strategy="ddp", count=2, accelerator="cpu", epochs=3, out=out)
    printed = capsys.readouterr().out
    assert 'raise ValueError("the data of rank 1 are broken")' in printed
    assert "leaked" not in printed
    assert epochs_in(out) == 1


@pytest.mark.slow
def test_a_killed_rank_is_named_and_resumed_it_ends_as_an_unbroken_run_of_the_other_strategy(
    launched, own, tmp_path, capsys
):
    launched.ranks()[1].kill()
    status, output, left = launched.end()
    assert (status, left) == (1, [])
    assert "rank 1 was killed by SIGKILL" in output and "leaked" not in output
    done = epochs_in(tmp_path / "out")
    assert done >= 2
    how = {"epochs": done + 1, "count": 2, "accelerator": "cpu"}
    resumed = run_training(f"{own}:slow", strategy="ddp", out=tmp_path / "out", resume=True, **how)
    capsys.readouterr()
    whole = run_training(
        "course_lessons.sample_training:air_rnn",
        strategy="ddp_spawn",
        out=tmp_path / "whole",
        **how,
    )
    printed = capsys.readouterr().out
    assert all(f"epoch {number}/{done + 1}: train_loss" in printed for number in range(1, done + 2))
    assert whole.ranks == resumed.ranks == 2 and len(whole.losses) == done + 1
    assert resumed.losses == pytest.approx(whole.losses, abs=1e-6)
    folders = (tmp_path / "out", tmp_path / "whole")
    states = [torch.load(folder / "last.ckpt", weights_only=True) for folder in folders]
    one, other = (state["state_dict"] for state in states)
    assert all(torch.allclose(one[name], other[name], atol=1e-6) for name in one)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_a_launcher_that_is_ended_leaves_nothing_running(launched, tmp_path, number, expected):
    launched.process.send_signal(number)
    status, output, left = launched.end()
    assert (status, left) == (expected, [])
    assert "leaked" not in output and "Traceback" not in output
    assert epochs_in(tmp_path / "out") >= 2


@pytest.mark.slow
@pytest.mark.parametrize("who", ["launcher", "starter", "rank"])
def test_a_training_that_prints_nothing_is_ended_too(own, tmp_path, who):
    launch = Launch(f"{own}:quiet", tmp_path / "out")
    if who == "rank":
        launch.ranks()[1].terminate()
    elif who == "starter":
        launch.starter().terminate()
    else:
        launch.process.kill()
    _, output, left = launch.end()
    assert left == []
    if who == "rank":
        assert "rank 1 was killed by SIGTERM" in output
    if who == "starter":
        assert "was ended by SIGTERM" in output


@pytest.mark.slow
def test_with_dropout_and_a_random_sampler_a_resumed_run_equals_an_unbroken_one(
    own, tmp_path, monkeypatch
):
    mark = uuid.uuid4().hex
    monkeypatch.setenv("FAMILY", mark)
    how = {"accelerator": "cpu", "count": 1}
    whole = run_training(f"{own}:drawing", strategy="ddp", epochs=3, out=tmp_path / "whole", **how)
    run_training(f"{own}:drawing", epochs=1, out=tmp_path / "out", **how)
    resumed = run_training(f"{own}:drawing", epochs=3, out=tmp_path / "out", resume=True, **how)
    assert resumed.losses == whole.losses
    assert len(set(whole.losses)) == 3  # each epoch draws numbers of its own
    assert family(mark) == []  # the lesson has left a process
