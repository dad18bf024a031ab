"""What the set-up cell of a lesson does beyond its packages: a folder, and the first picture."""

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
