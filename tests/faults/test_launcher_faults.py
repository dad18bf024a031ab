"""Everything that a classroom does to a launch, done for real, with the processes left behind
counted.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest
import torch
from launches import CLASSROOM, FORK, PATIENCE_S, TWO
from stand_ins import compile_stub, needs_gcc


def checkpoint_of(classroom):
    return torch.load(classroom.out / "checkpoints" / "last.ckpt", weights_only=True)


def test_a_rank_that_raises_shows_its_own_traceback_first(classroom):
    status, output = classroom.run(*TWO, "--strategy", "ddp_spawn", fault="raise")
    ended = time.time()
    assert status == 1
    first = output[output.index("Traceback") :]
    assert output[: output.index("Traceback")].endswith("[rank 1] ")
    assert first.index("ValueError: the sample is bad") < first.index(
        "launch: rank 1 raised ValueError"
    )
    assert "classroom.py" in first and "Connection closed" not in first[: first.index("ValueError")]
    assert ended - float(classroom.wait_for_note("fault")) < 10
    assert classroom.left_behind() == []


def test_parameters_that_the_loss_does_not_use_are_named_with_what_to_do(classroom):
    status, output = classroom.run(*FORK, lesson="lesson_with_an_idle_layer")
    said = output[output.index("launch: rank") :]
    assert (
        status == 1
        and "the loss does not use these parameters" in said
        and "Freeze or delete them" in said
    )
    assert (
        "idle.weight" in said
        and "idle.bias" in said
        and "line." not in said
        and said.count("\n") == 1
    )
    assert classroom.left_behind() == []


def test_a_rank_killed_by_the_system_is_named_with_what_to_try(classroom):
    process = classroom.launch(*TWO, "--strategy", "ddp", fault="wait to be killed")
    classroom.wait_for_note("fault")
    os.kill(int(classroom.wait_for_note("pid-1")), signal.SIGKILL)
    killed = time.time()
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert time.time() - killed < 15
    assert process.returncode == 1
    assert "launch: rank 1 was killed by signal 9 (SIGKILL)" in output
    assert "memory" in output and "--global-batch" in output and "--resume" in output
    assert classroom.left_behind() == []
    assert checkpoint_of(classroom)["epoch"] == 0


def test_the_only_rank_killed_by_the_system_is_named_too(classroom):
    process = classroom.launch("--epochs", "4", "--accelerator", "cpu", fault="wait to be killed")
    os.kill(int(classroom.wait_for_note("pid-0")), signal.SIGKILL)
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1 and "rank 0 was killed by signal 9" in output
    assert classroom.left_behind() == []


def test_a_rank_that_leaves_without_a_word_is_named_with_its_status(classroom):
    status, output = classroom.run(*FORK, fault="exit")
    assert status == 1 and "rank 1 ended with exit status 7" in output
    assert classroom.left_behind() == []


def test_a_rank_that_leaves_with_status_0_has_not_trained(classroom):
    status, output = classroom.run(*FORK, fault="exit quietly")
    assert (
        status == 1
        and "rank 1 ended with exit status 0" in output
        and "before the training was done" in output
    )
    assert not (classroom.out / "result.json").exists() and classroom.left_behind() == []


def test_a_lesson_that_calls_exit_has_not_trained(classroom):
    status, output = classroom.run("--accelerator", "cpu", lesson="lesson_that_calls_exit")
    assert (
        status == 1
        and "the first process ended with exit status 0" in output
        and "is whole" not in output
    )
    assert not (classroom.out / "result.json").exists() and classroom.left_behind() == []


def test_a_training_that_is_done_counts_though_the_lesson_has_left_a_thread(classroom):
    status, output = classroom.run("--accelerator", "cpu", "--epochs", "2", fault="leave a thread")
    assert status == 0 and (classroom.out / "result.json").exists(), output
    assert classroom.left_behind() == []


def test_a_rank_that_hangs_is_named_with_the_line_where_it_stands(classroom):
    status, output = classroom.run(*FORK, "--timeout", "3", fault="hang")
    ended = time.time()
    assert status == 1
    assert "rank 1 has been silent since" in output and "rank 0 has been silent" not in output
    assert "has its batch, and has not finished the forward pass" in output
    assert "classroom.py" in output and "in misbehave" in output
    assert 3 <= ended - float(classroom.wait_for_note("fault")) < 15
    assert classroom.left_behind() == []


def test_a_rank_that_the_system_stopped_counts_as_silent(classroom):
    process = classroom.launch(*FORK, "--timeout", "3", "--epochs", "50", fault="slow")
    os.kill(int(classroom.wait_for_note("pid-1")), signal.SIGSTOP)
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1 and "rank 1 has been silent since" in output
    assert classroom.left_behind() == []


@pytest.mark.parametrize(
    "signal_number", [signal.SIGINT, signal.SIGKILL], ids=["ctrl_c", "parent_killed"]
)
def test_all_ends_when_the_launcher_is_stopped_and_the_checkpoint_loads(classroom, signal_number):
    arguments = (*TWO, "--strategy", "ddp_spawn", "--epochs", "200", "--num-workers", "1")
    process = classroom.launch(*arguments, fault="slow")
    classroom.wait_for_note("pid-1")
    assert len(classroom.family()) >= 6, (
        "the launcher, its first process, two ranks, a loader for each"
    )
    if signal_number == signal.SIGINT:
        refused_as_the_second_launch(classroom)
    process.send_signal(signal_number)
    assert classroom.seconds_until_all_ended(10) < 10, classroom.left_behind()
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == (130 if signal_number == signal.SIGINT else -9)
    assert signal_number == signal.SIGKILL or "every process has ended" in output
    assert classroom.left_behind() == []
    assert checkpoint_of(classroom)["global_step"] % 4 == 0


def refused_as_the_second_launch(classroom):
    """Two launches at once in one --out."""
    status, output = classroom.run(*TWO)
    assert status == 2 and "is in use by process" in output and "Traceback" not in output
    assert "cannot be used" not in output, "one reason is enough"
    assert str(classroom.started[0].pid) in output


def test_a_taken_port_that_another_shell_has_left_does_no_harm(classroom):
    with socket.socket() as other:
        other.bind(("", 0))
        other.listen()
        port = other.getsockname()[1]
        status, output = classroom.run(*FORK, "--epochs", "1", MASTER_PORT=str(port))
    assert status == 0, output
    assert classroom.left_behind() == []


def test_a_lesson_that_hangs_before_any_rank_has_started_ends_by_the_timeout(classroom):
    status, output = classroom.run(*FORK, "--timeout", "1", lesson="lesson_that_sleeps")
    assert status == 1 and "it is loading the lesson. The limit of 1 s ended the run" in output
    assert "in lesson_that_sleeps" in output and "is whole" not in output
    assert classroom.left_behind() == []


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux limits the address space"
)
def test_too_little_address_space_is_one_sentence(classroom):
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (800_000_000, 800_000_000))\n"
    )
    code += "from course_utils.launch import main; sys.exit(main(sys.argv[1:]))"
    command = [
        sys.executable,
        "-c",
        code,
        "--lesson",
        f"{CLASSROOM}:make_lesson",
        "--accelerator",
        "cpu",
    ]
    command += ["--out", str(classroom.out)]
    result = subprocess.run(
        command, env=classroom.environment(), capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert result.returncode == 2 and result.stderr.startswith(
        "launch: PyTorch or Lightning does not load: "
    )
    assert (
        "Raise the limit of `ulimit -v`, if there is one." in result.stderr
        and result.stderr.count("\n") == 1
    )
    assert "Traceback" not in result.stderr + result.stdout and classroom.left_behind() == []


def test_a_torch_that_does_not_load_is_one_sentence_that_leads_to_the_doctor(classroom):
    (classroom.folder / "torch.py").write_text("raise ImportError('libcudart.so.12: cannot open')")
    path = os.pathsep.join([str(classroom.folder), os.environ.get("PYTHONPATH", "")])
    status, output = classroom.run("--accelerator", "cpu", PYTHONPATH=path)
    assert status == 2 and "Traceback" not in output
    assert output.startswith(
        "launch: PyTorch or Lightning does not load: ImportError: libcudart.so.12: cannot open."
    )
    assert "python -m course_utils.doctor" in output and classroom.left_behind() == []


@needs_gcc
def test_a_library_of_a_driver_that_hangs_does_no_harm_where_the_cpu_was_asked_for(classroom):
    hangs = "#include <unistd.h>\nint nvmlInit(void) { return sleep(600); }\nint nvmlInit_v2(void) { return sleep(600); }\n"
    (classroom.folder / "hangs.c").write_text(hangs)
    compile_stub(classroom.folder / "hangs.c", classroom.folder / "libnvidia-ml.so.1")
    arguments = ("--accelerator", "cpu", "--epochs", "1", "--timeout", "20")
    status, output = classroom.run(*arguments, LD_LIBRARY_PATH=str(classroom.folder))
    assert status == 0 and classroom.left_behind() == [], output


def test_a_full_disk_is_named_and_the_previous_checkpoint_stays_whole(
    classroom, small_disk, one_epoch
):
    shutil.copytree(one_epoch, small_disk, dirs_exist_ok=True)
    checkpoint = small_disk / "checkpoints" / "last.ckpt"
    before = checkpoint.read_bytes()
    with (
        (small_disk / "filler").open("wb", buffering=0) as filler,
        pytest.raises(OSError, match="No space"),
    ):
        while True:
            filler.write(b"0" * 512)
    status, output = classroom.run(*FORK, "--resume")
    assert status == 1
    verdict = output[output.index("launch: rank 0 raised OSError") :]
    assert "no space for the checkpoint: it takes" in verdict
    assert str(checkpoint.parent) in verdict and "free" in verdict and "kB" in verdict
    assert checkpoint.read_bytes() == before
    assert checkpoint_of(classroom)["epoch"] == 0
    assert classroom.left_behind() == []


class Hostile:
    """What a pickle does when it is loaded: here, write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return exec, (f"open({str(self.path)!r}, 'w').write('code ran')",)


CHECKPOINT = {
    "state_dict": {"line.weight": torch.zeros(1, 2), "line.bias": torch.zeros(1)},
    "epoch": 0,
    "global_step": 4,
    "optimizer_states": [{}],
}


def test_a_hostile_checkpoint_is_refused_and_no_code_of_it_runs(classroom):
    """The other bad ones are refused at the same place: see test_launch_checkpoints."""
    checkpoint = classroom.out / "checkpoints" / "last.ckpt"
    checkpoint.parent.mkdir(parents=True)
    torch.save({**CHECKPOINT, "extra": Hostile(classroom.folder / "code-ran")}, checkpoint)
    # This variable makes torch.load run code unless it is told explicitly not to.
    force = {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
    status, output = classroom.run("--resume", "--accelerator", "cpu", **force)
    assert (
        status == 2
        and "was refused: it holds a pickled call" in output
        and "Traceback" not in output
    )
    assert not (classroom.folder / "code-ran").exists()
    assert classroom.left_behind() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--devices", "0"], "'0' is not a number of devices. Write 1, 2, ... or auto"),
        (["--devices", "-3"], "'-3' is not a number of devices"),
        (["--devices", "many"], "'many' is not a number of devices"),
        (
            ["--devices", "5000", "--accelerator", "cpu"],
            "--devices 5000 was requested, but this machine has a CPU",
        ),
        (["--lesson", "nowhere.py:make_lesson"], "names the file nowhere.py, which is not there"),
        (
            ["--lesson", "{folder}/broken.py:make_lesson"],
            "'(' was never closed (broken.py, line 2)",
        ),
        (["--lesson", f"{CLASSROOM}:no_such_function"], "defines no function 'no_such_function'"),
        (["--lesson", "air_rrn"], "there is no lesson 'air_rrn'. Write one of air_rnn"),
    ],
)
def test_a_wrong_request_gets_a_sentence_and_status_2(classroom, capsys, arguments, message):
    from course_utils.launch import main

    (classroom.folder / "broken.py").write_text("def make_lesson():\n    return (\n")
    arguments = [word.format(folder=classroom.folder) for word in arguments]
    lesson = [] if "--lesson" in arguments else ["--lesson", "air_rnn"]
    try:
        status = main([*lesson, *arguments, "--out", str(classroom.out)])
    except SystemExit as exit:
        status = exit.code
    output = "".join(capsys.readouterr())
    assert status == 2 and message in output and "Traceback" not in output
    assert classroom.left_behind() == []


def test_a_lesson_that_returns_the_wrong_thing_gets_a_sentence_and_status_2(classroom):
    status, output = classroom.run(lesson="returns_a_number")
    assert status == 2 and "returned int. It must return a LightningModule and its data" in output
    assert "Traceback" not in output
    assert classroom.left_behind() == []
