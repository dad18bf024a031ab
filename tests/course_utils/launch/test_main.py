"""What the command and `run_lesson` refuse before they start a process."""

import fcntl
import json
import os
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from course_utils.launch import run
from course_utils.launch.__main__ import EXAMPLES, build_parser, main
from course_utils.launch.request import LaunchError, Request
from course_utils.launch.result import RunResult
from course_utils.launch.run import RunError, clean_environment, how_it_ended, run_lesson

TRAINING = "json:loads"  # a function that is there; none of these tests runs it


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--devices", "-3"], "devices must be a whole number of at least 1, not -3"),
        (["--devices", "two"], "--devices: invalid int value: 'two'"),
        (["--epochs", "0"], "epochs must be a whole number of at least 1, not 0"),
        (["--out", ""], "out must be the name of a folder"),
        (["--strategy", "dp"], "strategy must be ddp_spawn or ddp, not 'dp'"),
        (["--accelerator", "tpu"], "train_lightning.py"),
        (["--lesson", "nobody"], "'nobody' does not name a function"),
        (["--lesson", "missing.py:make"], "there is no file 'missing.py'"),
    ],
)
def test_nonsense_ends_with_status_2_and_one_sentence(options, words, capsys, tmp_path):
    try:
        status = main(["--lesson", TRAINING, "--out", str(tmp_path), *options])
    except SystemExit as exit:
        status = exit.code
    message = capsys.readouterr().err
    assert status == 2 and words in message
    assert message.startswith("launch: ") and message.count("\n") == 1


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LaunchError, match="cannot be used"):
        run_lesson(TRAINING, out=tmp_path / "file" / "out")


def test_a_second_launch_in_a_folder_is_refused_and_names_the_first(tmp_path):
    lock = os.open(tmp_path / "launch.lock", os.O_RDWR | os.O_CREAT)
    os.write(lock, b"the launch of first.py:make (process 123)")
    fcntl.flock(lock, fcntl.LOCK_EX)
    (tmp_path / "result.json").write_text("of the first")
    with pytest.raises(LaunchError, match=r"in use by the launch of first.py:make \(process 123\)"):
        run_lesson(TRAINING, out=tmp_path)
    os.close(lock)
    assert (tmp_path / "result.json").read_text() == "of the first"


def killed_while_saving(request, lock):
    """Stand in for a training that wrote a part of a checkpoint, and was killed."""
    (Path(request.out) / "last.ckpt.0123abcd.part").write_text("half a checkpoint")
    return -9, {}


def test_a_launch_that_fails_removes_what_it_wrote_and_nothing_else(tmp_path, monkeypatch):
    theirs = ["film.mkv.part", "last.ckpt.part", "last.ckpt.4711.part", "notes.txt", "result.json"]
    earlier = RunResult(TRAINING, "ddp", "cpu", 1, [0.5], 1.0, "last.ckpt")
    for name in theirs:
        (tmp_path / name).write_text(json.dumps(asdict(earlier)))
    monkeypatch.setattr(run, "_follow", killed_while_saving)
    with pytest.raises(RunError, match="SIGKILL"):
        run_lesson(TRAINING, out=tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted([*theirs, "launch.lock"])
    assert RunResult.load(tmp_path / "result.json") == earlier


@pytest.mark.parametrize("name", ["result.json", "launch.lock"])
@pytest.mark.parametrize("content", ["[1, 2]", '{"lesson": "a.py:f"}', '{"strategy', "\0", "7"])
def test_a_file_that_no_launch_wrote_is_not_written_over(tmp_path, monkeypatch, name, content):
    monkeypatch.setattr(run, "_follow", killed_while_saving)
    (tmp_path / name).write_text(content)
    with pytest.raises(LaunchError, match=f"{name} that the launcher did not write.*another fold"):
        run_lesson(TRAINING, out=tmp_path)
    assert (tmp_path / name).read_text() == content


def test_each_new_run_keeps_the_checkpoint_of_every_earlier_one(tmp_path):
    from course_utils.launch.train import keep_checkpoint

    request = Request(TRAINING, out=str(tmp_path))
    for content in "abc":
        request.checkpoint.write_text(content)
        keep_checkpoint(request)
    assert sorted(path.read_text() for path in tmp_path.iterdir()) == ["a", "b", "c"]


def test_a_notebook_reads_of_its_arguments_and_not_of_options_of_a_command():
    with pytest.raises(LaunchError) as refused:
        run_lesson(TRAINING, out="")
    assert "--" not in str(refused.value)


def test_true_is_not_a_number_of_devices():
    with pytest.raises(LaunchError, match="devices"):
        run_lesson(TRAINING, devices=True)


def test_the_command_and_the_function_have_the_same_defaults():
    parsed = build_parser().parse_args(["--lesson", TRAINING])
    assert Request(**vars(parsed)) == Request(TRAINING)
    assert vars(parsed).items() >= run_lesson.__kwdefaults__.items()


def test_the_examples_of_the_help_are_accepted_on_a_mac(monkeypatch, tmp_path):
    from course_utils.launch import train

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COURSE_DEVICE", raising=False)
    (tmp_path / "my_training.py").write_text("")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda *_: torch.device("mps"))
    examples = re.findall(r"course_utils\.launch (.*(?:\\\n.*)*)", EXAMPLES)
    assert len(examples) >= 3
    for example in examples:
        options = build_parser().parse_args(example.replace("\\\n", " ").split())
        accelerator, _ = train.choose_devices(Request(**vars(options)))
        assert accelerator == "cpu"


def test_another_launchers_variables_are_removed_and_the_users_stay():
    # What torchrun of PyTorch 2.9 sets (its manual, "Environment Variables"), and SLURM.
    foreign = {f"{of}{what}" for of in ("", "LOCAL_", "ROLE_") for what in ("RANK", "WORLD_SIZE")}
    foreign |= {"GROUP_RANK", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT", "SLURM_NTASKS"}
    foreign |= {f"TORCHELASTIC_{one}" for one in ("RUN_ID", "RESTART_COUNT", "MAX_RESTARTS")}
    foreign |= {f"SLURM_{one}" for one in ("PROCID", "LOCALID", "NODEID")}
    own = ("LOCAL_DATA", "MASTER_KEY", "GROUP_NAME", "RANKING", "SLURM_JOB_ID", "PATH")
    left = clean_environment(dict.fromkeys([*foreign, *own], "1"))
    assert not foreign & set(left)
    assert set(own) <= set(left)


def test_an_unknown_signal_has_its_number():
    assert how_it_ended(-9) == "was killed by SIGKILL"
    assert how_it_ended(-40) == "was killed by signal 40"
    assert how_it_ended(2) == "ended with status 2"


@pytest.mark.parametrize("error", [BrokenPipeError(), OSError(28, "No space left on device")])
def test_an_output_that_cannot_be_written_ends_without_a_traceback(error, monkeypatch, capfd):
    def fail(*_):
        raise error

    monkeypatch.setattr("course_utils.launch.__main__.run_lesson", lambda **_: fail())
    monkeypatch.setattr(os, "dup2", lambda *_: None)
    assert main(["--lesson", TRAINING]) in (1, 141)
    assert "Traceback" not in capfd.readouterr().err


def test_the_output_of_a_run_ends_though_a_process_that_left_it_holds_it(monkeypatch, tmp_path):
    train = tmp_path / "train.py"
    train.write_text(
        "import subprocess, sys\n"
        "print('trained', end='')\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(30)'],"
        " start_new_session=True)\n"
    )
    monkeypatch.setattr(run, "__file__", str(tmp_path / "run.py"))
    request = SimpleNamespace(out=str(tmp_path))
    monkeypatch.setattr(run, "asdict", vars)
    with open(tmp_path / "lock", "w") as lock:
        assert run._follow(request, lock.fileno()) == (0, {})


@pytest.mark.process
def test_the_command_does_not_import_torch_to_read_its_options():
    code = "import sys, course_utils.launch.__main__; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
