"""Cells that begin with `%%needs`, in IPython's own shell, as a kernel runs it."""

import os
import re
import subprocess
import sys

import pytest
from IPython.core.interactiveshell import InteractiveShell
from stand_ins import REPOSITORY, needs_cuda_build, needs_gcc, needs_linux, needs_no_gpu, stub_driver

from course_utils.lessons.needs import what_cells_need


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
    shell, result, shown = run("%%needs XLA\ndef double(x):\n    return 2 * x\n\n\ny = double(3)\ny")
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


TRAIN_IN_A_COPY = """
import multiprocessing, sys, torch
from IPython.core.interactiveshell import InteractiveShell
from course_utils.lessons.needs import what_cells_need
def go_backward(): torch.nn.Linear(3, 1)(torch.rand(2, 3)).sum().backward()
InteractiveShell.instance()
what_cells_need(**{name: None for name in sys.argv[1:]})
go_backward()
copy = multiprocessing.get_context("fork").Process(target=go_backward)
copy.start(); copy.join()
print(copy.exitcode, torch.cuda.device_count())
"""


@needs_linux
@needs_gcc
@needs_cuda_build
@needs_no_gpu
@pytest.mark.process
@pytest.mark.parametrize(("needed", "status"), [("XLA", 1), ("ranks", 0)])
def test_beside_a_gpu_a_copy_of_the_kernel_trains_where_cells_need_ranks(needed, status, tmp_path):
    environment = {**os.environ, **stub_driver(tmp_path, cards="NVIDIA H100"), "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", TRAIN_IN_A_COPY, needed]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.split()[-2:] == [str(status), "1"], done.stderr
    assert ("Autograd-and-Fork" in done.stderr) == (status == 1)
