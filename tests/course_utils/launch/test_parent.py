"""What a launch refuses, and which files it leaves alone."""

import fcntl
import json
import os
import threading

import pytest
from start_python import python

from course_utils import LaunchError, RunError, run_training
from course_utils.launch import parent
from course_utils.launch.request import Request
from course_utils.launch.result import RunResult

TRAINING = "json:loads"  # a function that is there; none of these tests runs it


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LaunchError, match="cannot be used"):
        run_training(TRAINING, out=tmp_path / "file" / "out")


def test_a_second_launch_in_a_folder_is_refused_and_names_the_first(tmp_path):
    lock = os.open(tmp_path / "launch.lock", os.O_RDWR | os.O_CREAT)
    os.write(lock, b"the launch of first.py:make (process 123)")
    fcntl.flock(lock, fcntl.LOCK_EX)
    (tmp_path / "result.json").write_text("of the first")
    with pytest.raises(LaunchError, match=r"in use by the launch of first.py:make \(process 123\)"):
        run_training(TRAINING, out=tmp_path)
    os.close(lock)
    assert (tmp_path / "result.json").read_text() == "of the first"


def test_a_folder_is_free_again_after_a_launch_in_this_process(tmp_path):
    for name in ("json:load_of_a_long_name", TRAINING):
        with parent._own_folder(Request(name, out=str(tmp_path))):
            said = (tmp_path / "launch.lock").read_text()
            assert said == f"the launch of {name} (process {os.getpid()})"


def killed(*_):
    """Stand in for a training that was killed."""
    return -9, {}


def killed_while_saving(request, *_):
    """Stand in for a training that wrote a part of a checkpoint, and was killed."""
    (request.checkpoint.parent / "last.ckpt.4711.part").write_text("half a checkpoint")
    return -9, {}


def test_a_launch_that_fails_changes_no_file_and_leaves_none(tmp_path, monkeypatch):
    earlier = RunResult(TRAINING, "ddp", "cpu", 1, [0.5], 1.0, "last.ckpt")
    theirs = ["film.mkv.part", "last.ckpt.1.part", "notes.txt"]
    for name in theirs:
        (tmp_path / name).write_text("mine")
    earlier.save(tmp_path / "result.json")
    monkeypatch.setattr(parent, "_follow", killed_while_saving)
    with pytest.raises(RunError, match="SIGKILL") as failed:
        run_training(TRAINING, out=tmp_path)
    assert "resume" not in str(failed.value)  # nothing was saved
    assert sorted(os.listdir(tmp_path)) == sorted([*theirs, "launch.lock", "result.json"])
    assert RunResult.load(tmp_path / "result.json") == earlier


def test_a_launch_that_fails_after_an_epoch_says_that_it_can_be_resumed(tmp_path, monkeypatch):
    def killed_later(request, *_):
        request.checkpoint.write_text("a whole checkpoint")
        return -9, {}

    monkeypatch.setattr(parent, "_follow", killed_later)
    with pytest.raises(RunError, match="checkpoint is kept, and resume continues from it"):
        run_training(TRAINING, out=tmp_path)


@pytest.mark.parametrize("name", ["result.json", "launch.lock"])
@pytest.mark.parametrize("content", ["my notes", '{"lesson": "a.py:f"}'])
def test_a_file_that_no_launch_wrote_is_not_written_over(tmp_path, monkeypatch, name, content):
    monkeypatch.setattr(parent, "_follow", killed)
    (tmp_path / name).write_text(content)
    with pytest.raises(LaunchError, match=f"{name} that the launcher did not write.*another fold"):
        run_training(TRAINING, out=tmp_path)
    assert (tmp_path / name).read_text() == content


@pytest.mark.process
def test_a_limit_of_address_space_is_named_when_the_training_cannot_start(tmp_path):
    code = f"""if True:
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (2**29, 2**29))
        from course_utils import run_training
        run_training({TRAINING!r}, out={str(tmp_path)!r})
    """
    done = python("-c", code, fresh=True)
    assert "RunError" in done.stderr and "ulimit -v` allows a process 537 MB" in done.stderr


class Training:
    """Stands in for the process that starts the ranks."""

    pid, returncode = 4711, 3

    def __init__(self, command, *, stdout, pass_fds, **how):
        self.how, self.ended = how, threading.Event()
        os.write(stdout, b"connected peer ranks\nepoch 1\n")
        os.write(pass_fds[0], json.dumps({"why": "no reason", "refused": False}).encode())
        self.done = []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def wait(self):
        self.done.append("waited")


@pytest.mark.parametrize("interrupted", [False, True])
def test_what_outlives_a_training_is_ended_and_so_is_one_that_is_stopped(
    tmp_path, monkeypatch, capsys, interrupted
):
    started, ended, finished = [], [], threading.Event()

    def popen(*words, **how):
        started.append(Training(*words, **how))
        if interrupted:
            started[0].wait = lambda: finished.wait(60)
        return started[0]

    def show(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(parent.subprocess, "Popen", popen)
    monkeypatch.setattr(parent, "end_group", lambda group: ended.append(group))
    if interrupted:
        monkeypatch.setattr(parent, "print", show, raising=False)
        with pytest.raises(KeyboardInterrupt):
            parent._follow(Request(TRAINING, out=str(tmp_path)), 0, {})
        assert ended == [4711]
        finished.set()
        return
    status, report = parent._follow(Request(TRAINING, out=str(tmp_path)), 0, {})
    assert (status, report["why"]) == (3, "no reason")
    assert started[0].done == ["waited"] and ended == [4711]
    assert capsys.readouterr().out == "epoch 1\n"
    assert started[0].how["start_new_session"]  # out of reach of Ctrl-C
