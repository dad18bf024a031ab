"""Cells that begin with `%%needs`, in IPython's own shell, as a kernel runs it."""

import builtins
import re

import pytest
from course_lessons import needs
from course_lessons.needs import no_copies, what_cells_need
from IPython.core.interactiveshell import InteractiveShell

BESIDE_A_GPU = "beside a GPU it is left out. The text below it says what to write there."


@pytest.fixture
def run(monkeypatch, capsys):
    shell = InteractiveShell()
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    monkeypatch.delattr(builtins, "_", raising=False)  # a doctest's; IPython then makes none
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
    ("system", "there", "ranks", "reason"),
    [
        ("linux", "", None, None),
        ("linux", "cuda", None, BESIDE_A_GPU),
        ("linux", "xpu", None, BESIDE_A_GPU),
        ("linux", "xla", None, "where XLA has started, no copy of this kernel can train."),
        ("darwin", "", None, "on a Mac no copy of this kernel can train."),
        ("win32", "", "on Windows no ranks start.", "on Windows no ranks start."),
    ],
)
def test_copies_of_a_kernel_train_on_linux_without_a_gpu_or_xla_alone(
    system, there, ranks, reason, monkeypatch
):
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr(needs, "NO_RANKS", ranks)
    monkeypatch.setattr(needs, "started_xla", lambda: there == "xla")
    for kind in ("cuda", "xpu"):
        count = int(there == kind)
        monkeypatch.setattr(f"torch.{kind}.device_count", lambda count=count: count)
    assert no_copies() == reason
