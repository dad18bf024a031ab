"""What the set-up cell of a lesson does beyond its packages: a folder, and the first picture."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from course_lessons import openings, setup
from course_lessons.openings import OPENINGS
from course_lessons.setup import enter_folder
from packaging.requirements import Requirement

from course_tools.figures import Picture
from course_utils.load_function import load_function

LESSONS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))


def test_each_lesson_has_an_opening_whose_words_are_one_short_sentence():
    assert list(OPENINGS) == [lesson.stem[3:] for lesson in LESSONS]
    for name, words in OPENINGS.values():
        load_function(name)
        assert len(words) <= 120 and ". " not in words


@pytest.mark.parametrize("times", [1, 2])
def test_a_lesson_works_in_a_folder_of_its_own_also_if_its_set_up_runs_twice(
    tmp_path, monkeypatch, times
):
    monkeypatch.chdir(tmp_path)
    for _ in range(times):
        assert enter_folder("gpu") == "files/gpu"
    assert Path.cwd() == tmp_path / "files" / "gpu"


@pytest.mark.parametrize(
    ("lesson", "problem", "drawn", "said"),
    [
        ("", "", None, " is here."),
        ("cpu", "", "cpu", "; what this lesson writes goes to files/cpu."),
        ("cpu", "no network", None, " is here, but not lightning: no network."),
        ("", "no network", None, " is here, but not lightning: no network."),
    ],
)
def test_a_lesson_opens_unless_something_could_not_be_added(
    lesson, problem, drawn, said, monkeypatch, tmp_path, capsys
):
    monkeypatch.chdir(tmp_path)
    missing = [Requirement("lightning")] if problem else []
    monkeypatch.setattr(setup, "use_kernel_python", lambda: None)
    monkeypatch.setattr(setup, "find_missing", lambda wanted: (missing, []))
    monkeypatch.setattr(setup, "install", lambda asked: problem)
    monkeypatch.setattr(openings, "draw_opening", lambda name: name)
    assert setup.set_up(lesson) == drawn and capsys.readouterr().out.endswith(f"{said}\n")
    assert (tmp_path / "files").exists() == bool(drawn)


@pytest.mark.parametrize(
    ("drawn", "words", "alt"),
    [("its own", "", "its own"), ("its own", "shorter", "shorter"), (None, "shorter", None)],
)
def test_the_opening_picture_has_the_lessons_words_or_its_own(drawn, words, alt, monkeypatch):
    found = Picture(b"", drawn) if drawn else None  # None: it cannot be drawn here
    monkeypatch.setitem(openings.OPENINGS, "cpu", ("a:b", words))
    monkeypatch.setattr(openings, "load_function", lambda name: lambda: found)
    assert getattr(openings.draw_opening("cpu"), "alt", None) == alt


PIP = [sys.executable, "-m", "pip", "install"]


@pytest.mark.parametrize(
    ("here", "status", "begins"),
    [
        ({"pip", "uv", "ensurepip"}, 1, PIP),
        ({"uv", "ensurepip"}, 1, ["/bin/uv", "pip", "install"]),
        ({"ensurepip"}, 0, PIP),
        ({"ensurepip"}, 1, []),
        (set(), 0, []),
    ],
)
def test_a_kernel_gets_packages_by_its_pip_or_uv_or_the_pip_that_python_brings(
    here, status, begins, monkeypatch
):
    done = subprocess.CompletedProcess([], status)
    monkeypatch.setattr(setup, "find_spec", lambda name: name in here or None)
    monkeypatch.setattr(setup.shutil, "which", lambda name: f"/bin/{name}" if name in here else "")
    monkeypatch.setattr(setup.subprocess, "run", lambda *_, **__: done)
    for variable in ("UV_HTTP_TIMEOUT", "UV_HTTP_RETRIES"):
        monkeypatch.setenv(variable, "30")
    monkeypatch.setenv("UV_SYSTEM_CERTS", "")  # so that it is as before afterwards
    monkeypatch.delenv("UV_SYSTEM_CERTS")
    command = setup.install_command()
    certificates = "1" if begins and begins != PIP else None
    assert os.environ.get("UV_SYSTEM_CERTS") == certificates
    assert command[: len(begins)] == begins and bool(command) == bool(begins)
    tries, patience_s = os.environ["UV_HTTP_RETRIES"], os.environ["UV_HTTP_TIMEOUT"]
    if begins == PIP:
        tries, patience_s = (command[4 + k].partition("=")[2] for k in (0, 1))
    assert not begins or (tries, patience_s) == ("1", "8")
    if not command:
        assert setup.install([Requirement("lightning>=2.5")]).endswith(
            f"In a terminal: uv pip install --python {sys.executable} 'lightning>=2.5'"
        )


@pytest.mark.parametrize(
    ("ends", "said", "answer"),
    [
        ([0], "", ""),
        ([1, 0], "", ""),
        (
            [1, 1],
            "Looking\nERROR: no a (from versions: none)",
            "no a (from versions: none) (connect to a network, or put the wheels of what is "
            "missing beside this notebook)",
        ),
        ([1, 1], "the disk is full.", "the disk is full (nothing that was here has changed)"),
    ],
)
def test_wheels_that_lie_here_come_before_an_index_and_what_is_here_stays(
    ends, said, answer, monkeypatch, tmp_path
):
    tried, left = [], iter(ends)

    def run(command, **_):
        words = dict(word.partition("=")[::2] for word in command)
        tried.append("--no-index" in command)
        assert Path(words["--constraint"]).read_text() == "torch==9.9\n" and command[-1] == "a<2"
        assert words["--find-links"] == str(tmp_path)
        return subprocess.CompletedProcess(command, next(left), "", said)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(setup, "installed", lambda: {"torch": "9.9", "apt": "1.1build1"})
    monkeypatch.setattr(setup, "install_command", lambda: ["pip"])
    monkeypatch.setattr(setup.subprocess, "run", run)
    assert setup.install([Requirement("a<2")]) == answer
    assert tried == [True, False][: len(ends)]


@pytest.mark.parametrize(
    ("stderr", "on_kaggle", "advice"),
    [
        ("Retrying (Retry(total=0))", False, "connect to a network"),
        # what pip 23.2 and uv 0.13 say of a certificate that nobody signed
        (
            "Retrying (Retry(total=0)) after 'SSL: CERTIFICATE_VERIFY_FAILED'",
            False,
            "this network has a cert",
        ),
        (
            "Failed to fetch\n  cause: invalid peer certificate: UnknownIssuer",
            True,
            "this network has a cert",
        ),
        ("(from versions: none)", True, "switch the internet on under Settings"),
        ("Request failed after 1 retries", True, "switch the internet on under Settings"),
        ("the disk is full", True, "nothing that was here has changed"),
    ],
)
def test_what_helps_is_the_switch_of_kaggle_or_a_network(
    stderr, on_kaggle, advice, monkeypatch, tmp_path
):
    monkeypatch.setattr(setup, "KAGGLE", tmp_path if on_kaggle else tmp_path / "none")
    assert setup.advise(stderr).startswith(advice)


def test_a_nightly_version_fits_and_an_older_or_absent_one_does_not(monkeypatch):
    def version(name):
        if name == "absent":
            raise setup.PackageNotFoundError
        return {"torch": "2.11.0.dev20251101", "old": "2.5"}[name]

    monkeypatch.setattr(setup, "version", version)
    wanted = [Requirement(f"{name}>=2.6") for name in ("torch", "old", "absent")]
    assert setup.find_missing(wanted) == (wanted[2:], wanted[1:2])
