"""The command: what it refuses before it starts a process, and how it ends."""

import io
import os
import re
import signal

import pytest
import torch

from course_utils import LaunchError, RunError, run_training
from course_utils.launch import child
from course_utils.launch.__main__ import EXAMPLES, build_parser, main
from course_utils.launch.request import Request

TRAINING = "json:loads"  # a function that is there; none of these tests runs it


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--count", "-3"], "count must be a whole number of at least 1, not -3"),
        (["--count", "two"], "--count: invalid int value: 'two'"),
        (["--epochs", "0"], "epochs must be a whole number of at least 1, not 0"),
        (["--out", ""], "out must be the name of a folder"),
        (["--strategy", "dp"], "strategy must be ddp_spawn or ddp, not 'dp'"),
        (["--accelerator", "tpu"], "accelerator='tpu'"),
        (["--seed", "-1"], "seed must be a whole number of 0 to 4294967295, not -1"),
        (["--training", "nobody"], "'nobody' does not name a function"),
        (["--training", "missing.py:make"], "there is no file 'missing.py'"),
    ],
)
def test_nonsense_ends_with_status_2_and_one_sentence(options, words, capsys, tmp_path):
    try:
        status = main(["--training", TRAINING, "--out", str(tmp_path), *options])
    except SystemExit as exit:
        status = exit.code
    message = capsys.readouterr().err
    assert status == 2 and words in message
    assert message.startswith("launch: ") and message.count("\n") == 1


def test_a_training_is_asked_for(capsys):
    with pytest.raises(SystemExit, match="2"):
        main([])
    assert "required: --training" in capsys.readouterr().err


def test_a_notebook_reads_of_its_arguments_and_not_of_options_of_a_command():
    for name, wrong in {"out": "", "count": True}.items():
        with pytest.raises(LaunchError, match=f"^{name} must") as refused:
            run_training(TRAINING, **{name: wrong})
        assert "--" not in str(refused.value)


def test_the_command_and_the_function_have_the_same_defaults():
    parsed = build_parser().parse_args(["--training", TRAINING])
    assert Request(**vars(parsed)) == Request(TRAINING)
    assert vars(parsed).items() >= run_training.__kwdefaults__.items()


def test_the_examples_of_the_help_are_accepted_on_a_mac(monkeypatch, tmp_path):
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
        accelerator, _ = child.choose_accelerator(Request(**vars(options)))
        assert accelerator == "cpu"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BrokenPipeError(), 141),
        (KeyboardInterrupt(), 130),
        (RunError("rank 1"), 1),
        (LaunchError("no"), 2),
    ],
)
def test_each_kind_of_end_has_its_status_and_no_traceback(error, status, monkeypatch, capfd):
    def fail(*_):
        raise error

    monkeypatch.setattr("course_utils.launch.__main__.run_training", lambda **_: fail())
    monkeypatch.setattr(os, "dup2", lambda *_: None)
    assert main(["--training", TRAINING]) == status
    assert "Traceback" not in capfd.readouterr().err


def test_a_progress_bar_reaches_a_terminal_that_cannot_show_it(monkeypatch):
    shown = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(shown, "latin-1"))
    monkeypatch.setattr(
        "course_utils.launch.__main__.run_training", lambda **_: print("40%|█", flush=True)
    )
    assert main(["--training", TRAINING]) == 0
    assert shown.getvalue().startswith(b"40%|\\u2588")


def test_a_launch_that_is_asked_to_end_exits_as_a_shell_expects(monkeypatch):
    def ask(**_):
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("course_utils.launch.__main__.run_training", ask)
    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with pytest.raises(SystemExit, match="143"):
            main(["--training", TRAINING])
    finally:
        signal.signal(signal.SIGTERM, before)
