"""What the command and `run_lesson` refuse before they start a process."""

import subprocess
import sys

import pytest

from course_utils.launch.__main__ import main
from course_utils.launch.request import LaunchError
from course_utils.launch.run import run_lesson


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--devices", "-3"], "devices must be a whole number of at least 1, not -3"),
        (["--devices", "two"], "--devices: invalid int value: 'two'"),
        (["--epochs", "0"], "epochs must be a whole number of at least 1, not 0"),
        (["--out", ""], "out must be the name of a folder"),
        (["--strategy", "dp"], "strategy must be ddp_spawn or ddp, not 'dp'"),
        (["--accelerator", "tpu"], "train_lightning.py"),
        (["--lesson", "nobody"], "there is no lesson 'nobody'"),
        (["--lesson", "missing.py:make"], "there is no file 'missing.py'"),
    ],
)
def test_nonsense_ends_with_status_2_and_one_sentence(options, words, capsys, tmp_path):
    try:
        status = main(
            ["--lesson", "course_lessons.air_rnn:air_rnn", "--out", str(tmp_path), *options]
        )
    except SystemExit as exit:
        status = exit.code
    message = capsys.readouterr().err
    assert status == 2 and words in message
    assert message.startswith("launch: ") and message.count("\n") == 1


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LaunchError, match="cannot be used"):
        run_lesson("course_lessons.air_rnn:air_rnn", out=tmp_path / "file" / "out")


def test_a_notebook_reads_of_its_arguments_and_not_of_options_of_a_command():
    with pytest.raises(LaunchError) as refused:
        run_lesson("course_lessons.air_rnn:air_rnn", out="")
    assert "--" not in str(refused.value)


def test_true_is_not_a_number_of_devices():
    with pytest.raises(LaunchError, match="devices"):
        run_lesson("course_lessons.air_rnn:air_rnn", devices=True)


@pytest.mark.process
def test_the_command_does_not_import_torch_to_read_its_options():
    code = "import sys, course_utils.launch.__main__; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
