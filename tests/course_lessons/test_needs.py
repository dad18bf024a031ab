"""Cells that begin with `%%needs`, in IPython's own shell, as a kernel runs it."""

import json
import os
import re
import subprocess
import sys

import pytest
from course_lessons import needs
from course_lessons.needs import no_copies, what_cells_need
from IPython.core.interactiveshell import InteractiveShell
from stand_ins import (
    REPOSITORY,
    needs_cuda_build,
    needs_gcc,
    needs_linux,
    needs_no_gpu,
    stub_driver,
)


@pytest.fixture
def run(monkeypatch, capsys):
    shell = InteractiveShell()
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    what_cells_need(XLA=None, Darts="it is on holiday.", GPU="it is out.")

    def run_cell(source):
        result = shell.run_cell(source)
        return shell, result, re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)

    return run_cell


def test_a_cell_whose_needs_are_met_runs_and_shows_its_last_line(run):
    shell, result, shown = run(
        "%%needs XLA\ndef double(x):\n    return 2 * x\n\n\ny = double(3)\ny"
    )
    assert result.success and shell.user_ns["y"] == 6
    assert "6" in shown and shell.user_ns["_"] == 6


def test_a_cell_that_needs_what_is_missing_says_so_and_does_not_run(run):
    shell, result, shown = run("%%needs XLA Darts GPU\nz = 1 / 0")
    assert result.success and "z" not in shell.user_ns
    assert shown == "This cell needs Darts, but it is on holiday.\n"


def test_the_last_word_on_what_is_missing_counts(run):
    what_cells_need(XLA="it was taken away.")
    _, _, shown = run("\n%%needs XLA\n1 / 0")
    assert shown == "This cell needs XLA, but it was taken away.\n"


def test_an_error_is_the_cells_own_and_names_its_line(run):
    _, result, shown = run("%%needs XLA\nx = 1\nx / 0")
    assert isinstance(result.error_in_exec, ZeroDivisionError)
    assert "----> 3 x / 0" in shown


@pytest.mark.parametrize("source", ["%%needs XLA\nx = 2\n", "%%needs XLA\n# only a comment\n"])
def test_a_cell_that_ends_in_no_expression_shows_nothing(run, source):
    _, result, shown = run(source)
    assert result.success and shown == ""


@pytest.mark.parametrize(
    ("forks", "gpus", "ranks", "told"),
    [
        (True, 0, None, None),
        (True, 1, None, "beside a GPU no copy of this kernel can train."),
        (False, 0, None, "on a Mac no copy of this kernel can train."),
        (False, 0, "on Windows no ranks start.", "on Windows no ranks start."),
    ],
)
def test_copies_of_a_kernel_train_on_linux_without_a_gpu_alone(
    forks, gpus, ranks, told, monkeypatch
):
    monkeypatch.setattr("course_lessons.exercises.sandbox.FORKS", forks)
    monkeypatch.setattr(needs, "FORKS", forks)
    monkeypatch.setattr(needs, "NO_RANKS", ranks)
    monkeypatch.setattr("torch.cuda.device_count", lambda: gpus)
    assert no_copies() == told


@pytest.mark.parametrize(
    "lesson", sorted((REPOSITORY / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem
)
def test_a_cell_that_trains_in_copies_of_its_kernel_says_so_where_there_can_be_none(lesson):
    # What lesson 9 calls its ranks are copies, too.
    need = "%%needs ranks\n" if lesson.stem == "09_old_guides" else "%%needs copies\n"
    cells = json.loads(lesson.read_text(encoding="utf-8"))["cells"]
    for source in ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"):
        copies = 'Trainer(strategy="ddp_notebook"' in source or 'get_context("fork")' in source
        assert not copies or source.startswith(need), source


TRAIN_IN_A_COPY = """
import multiprocessing, sys, torch
from IPython.core.interactiveshell import InteractiveShell
from course_lessons import multi_gpu, old_guides
def go_backward(): torch.nn.Linear(3, 1)(torch.rand(2, 3)).sum().backward()
InteractiveShell.instance()
if "lesson" in sys.argv:
    multi_gpu.set_up().joinpath("look.py").write_text("import torch; print(torch.cuda.device_count())")
    print(*multi_gpu.torchrun("look.py", ranks=1), "GPU" in old_guides.NO_RANKS)
go_backward()
copy = multiprocessing.get_context("fork").Process(target=go_backward)
copy.start(); copy.join()
print(copy.exitcode)
"""


@needs_linux
@needs_gcc
@needs_cuda_build
@needs_no_gpu
@pytest.mark.process
@pytest.mark.parametrize(("word", "told"), [("plain", ["1"]), ("lesson", ["1", "True", "0"])])
def test_beside_a_gpu_copies_of_lesson_3_train_and_its_scripts_see_the_gpu(word, told, tmp_path):
    variables = {
        **os.environ,
        **stub_driver(tmp_path, cards="NVIDIA H100"),
        "PYTHONPATH": str(REPOSITORY),
    }
    variables.pop("CUDA_VISIBLE_DEVICES", None)
    command = [sys.executable, "-c", TRAIN_IN_A_COPY, word]
    done = subprocess.run(
        command, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == told, done.stderr
    assert ("Autograd-and-Fork" in done.stderr) == (word == "plain")
