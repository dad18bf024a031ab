"""The command line of the launcher."""

import ast
import os
import subprocess
import sys

import pytest
from stand_ins import environment_without

from course_utils.launch import build_parser, main
from course_utils.lightning import trainer_kwargs

pytestmark = pytest.mark.process


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch):
    for name in ("TORCHELASTIC_RUN_ID", "SLURM_NTASKS", "TPU_WORKER_HOSTNAMES", "COURSE_DEVICE"):
        monkeypatch.delenv(name, raising=False)


def test_a_dry_run_prints_arguments_that_lightning_accepts_and_starts_nothing(capsys, tmp_path):
    from lightning.pytorch import Trainer

    out = tmp_path / "never"
    line = [
        "--lesson",
        "air_rnn",
        "--strategy",
        "ddp_spawn",
        "--devices",
        "2",
        "--accelerator",
        "cpu",
        "--epochs",
        "7",
    ]
    assert main([*line, "--out", str(out), "--dry-run"]) == 0
    call = ast.parse(capsys.readouterr().out).body[0].value
    arguments = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    assert (
        arguments["strategy"] == "ddp_spawn"
        and arguments["devices"] == 2
        and arguments["max_epochs"] == 7
    )
    assert not out.exists()
    # the first Trainer of a process imports torch_xla, which warns unless it is asked like this
    trainer_kwargs("cpu")
    trainer = Trainer(**arguments)
    assert trainer.world_size == 2 and trainer.max_epochs == 7


def test_a_dry_run_of_a_wrong_lesson_is_refused(capsys):
    assert main(["--lesson", "nowhere.py:make_lesson", "--dry-run"]) == 2
    assert "names the file nowhere.py, which is not there" in capsys.readouterr().err


def test_the_help_names_every_option_and_both_kinds_of_lesson(capsys):
    with pytest.raises(SystemExit) as exit:
        main(["--help"])
    text = capsys.readouterr().out
    assert exit.value.code == 0
    options = [option for action in build_parser()._actions for option in action.option_strings]
    assert all(option in text for option in options) and len(options) >= 15
    assert "air_rnn" in text and "path/to/file.py:make_lesson" in text and "torchrun" in text


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--num-workers", "few", "--num-workers: invalid int value: 'few'"),
        ("--timeout", "soon", "--timeout: invalid float value: 'soon'"),
        ("--strategy", "dp", "invalid choice: 'dp'"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_with_status_2(capsys, option, value, message):
    with pytest.raises(SystemExit) as exit:
        main(["--lesson", "air_rnn", f"{option}={value}"])
    assert exit.value.code == 2 and message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--epochs", "0", "epochs=0 was requested, but it must be from 1 to"),
        ("--global-batch", "-1", "global_batch=-1 was requested, but it must be from 1 to"),
        ("--num-workers", "-1", "num_workers=-1 was requested, but it must be from 0 to"),
        ("--seed", str(2**32), "was requested, but it must be from 0 to 4294967295"),
        ("--timeout", "0", "timeout_s=0.0 was requested, but it must be from 1 to"),
    ],
)
def test_a_number_out_of_range_is_refused_with_status_2(capsys, option, value, message):
    assert main(["--lesson", "air_rnn", f"{option}={value}"]) == 2
    assert message in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_refused_with_status_2(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    assert (
        main(
            ["--lesson", "air_rnn", "--accelerator", "cpu", "--out", str(tmp_path / "file" / "out")]
        )
        == 2
    )
    assert "cannot be used" in capsys.readouterr().err


def test_importing_the_command_line_imports_neither_torch_nor_lightning():
    heavy = "{'torch', 'lightning', 'torch_xla', 'matplotlib'}"
    code = f"import sys, course_utils.launch as _; print({heavy} & sys.modules.keys())"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "set()"


def test_an_empty_name_for_the_folder_is_refused(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["--lesson", "air_rnn", "--accelerator", "cpu", "--out", ""]) == 2
    assert "--out '' cannot be used" in capsys.readouterr().err and list(tmp_path.iterdir()) == []


def run(command):
    return subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        env={**os.environ, "P": sys.executable},
    )


def test_a_reader_that_has_gone_ends_the_command_quietly():
    result = run(
        "$P -m course_utils.launch --lesson air_rnn --accelerator cpu --dry-run | true; echo ${PIPESTATUS[0]}"
    )
    assert result.stderr == "" and result.stdout.strip() in ("0", "141")


def test_a_closed_standard_output_is_no_error():
    result = run("$P -m course_utils.launch --lesson air_rnn --accelerator cpu --dry-run >&-")
    assert result.returncode == 0 and result.stderr == ""


def test_where_only_torch_is_installed_a_launch_says_what_to_install_and_a_dry_run_works(tmp_path):
    extras = (
        "tqdm",
        "lightning",
        "pytorch_lightning",
        "psutil",
        "numpy",
        "pandas",
        "matplotlib",
        "ipywidgets",
    )
    python = environment_without(tmp_path / "torch_alone", *extras)
    command = [python, "-m", "course_utils.launch", "--lesson", "air_rnn", "--accelerator", "cpu"]
    dry = subprocess.run([*command, "--dry-run"], capture_output=True, text=True, cwd=tmp_path)
    assert dry.returncode == 0 and "max_epochs=20" in dry.stdout, dry.stderr
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert (
        "needs tqdm" in done.stderr and "pip install 'accelerator-course[lessons]'" in done.stderr
    )
    assert [path.name for path in tmp_path.iterdir()] == ["torch_alone"]


# What the modules and constants that Windows lacks do to the launcher; psutil needs some of them
# here.
LIKE_WINDOWS = """
import os, psutil, signal, subprocess, sys
sys.modules.update(dict.fromkeys(("fcntl", "resource")))
for module, name in ((os, "fork"), (signal, "SIGKILL"), (signal, "SIGUSR2"), (signal, "SIGPIPE"), (signal, "SIGHUP")):
    delattr(module, name)
from course_utils.launch import main
from course_lessons.needs import NO_RANKS
print(NO_RANKS, main(["--lesson", "air_rnn", "--dry-run"]), main(["--lesson", "air_rnn"]))
"""


def test_where_no_process_can_fork_a_launch_is_refused_in_a_sentence_and_the_lessons_say_so(
    tmp_path,
):
    """Stand-in: a Python without what Windows lacks."""
    done = subprocess.run(
        [sys.executable, "-c", LIKE_WINDOWS], capture_output=True, text=True, cwd=tmp_path
    )
    assert "Windows" in done.stdout and done.stdout.endswith(" 0 2\n"), done.stderr
    assert done.stderr == "launch: the launcher needs Linux or macOS. On Windows, run it in WSL.\n"
    assert list(tmp_path.iterdir()) == []
