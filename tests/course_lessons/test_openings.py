"""What the set-up cell of a lesson does beyond its packages: a folder, and the first picture."""

from pathlib import Path

import pytest
from course_lessons import openings
from course_lessons.openings import OPENINGS
from course_lessons.setup import enter_folder

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
    ("drawn", "words", "alt"),
    [("its own", "", "its own"), ("its own", "shorter", "shorter"), (None, "shorter", None)],
)
def test_the_opening_picture_has_the_lessons_words_or_its_own(drawn, words, alt, monkeypatch):
    found = Picture(b"", drawn) if drawn else None  # None: it cannot be drawn here
    monkeypatch.setitem(openings.OPENINGS, "cpu", ("a:b", words))
    monkeypatch.setattr(openings, "load_function", lambda name: lambda: found)
    assert getattr(openings.draw_opening("cpu"), "alt", None) == alt
