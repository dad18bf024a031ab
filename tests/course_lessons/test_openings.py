"""What the set-up cell of a lesson does beyond its packages: a folder, and the first picture."""

from pathlib import Path

import pytest
from course_lessons.openings import OPENINGS
from course_lessons.setup import enter_folder

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
