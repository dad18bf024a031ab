"""An nbgrader assignment out of a lesson. nbgrader itself is no dependency: the guide says how it was tried."""

import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from tools.assignment import assignment, main

LESSONS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
EXERCISE = "my_sum = ...\nex.adding.check(my_sum)"
FIELDS = {"grade_id", "schema_version", "solution", "grade", "locked", "task"}


@pytest.fixture
def lesson(monkeypatch):
    exercises = SimpleNamespace(adding=SimpleNamespace(solution=lambda: "my_sum = 1 + 1"))
    monkeypatch.setitem(sys.modules, "course_utils.lessons.made_up.exercises", exercises)
    sources = ["2 + 3", "from course_utils.lessons.made_up import exercises as ex", EXERCISE]
    cells = [nbformat.v4.new_markdown_cell("# A lesson"), *map(nbformat.v4.new_code_cell, sources)]
    return nbformat.v4.new_notebook(cells=cells)


def test_an_exercise_becomes_an_answer_with_the_solution_and_a_locked_cell_with_points(lesson):
    *_, student, graded = assignment(lesson).cells
    before, _, rest = student.source.partition("### BEGIN SOLUTION\n")
    assert (before, rest) == ("my_sum = ...\n", "my_sum = 1 + 1\n### END SOLUTION\nex.adding.check(my_sum)")
    assert student.metadata.nbgrader["solution"] and not student.metadata.nbgrader["locked"]
    assert graded.metadata.nbgrader["grade"] and graded.metadata.nbgrader["locked"]
    assert graded.metadata.nbgrader["points"] == 1
    assert set(student.metadata.nbgrader) >= FIELDS and set(graded.metadata.nbgrader) >= FIELDS


@pytest.mark.parametrize("solved", [True, False])
def test_the_locked_cell_fails_with_the_message_of_the_check_unless_the_answer_is_right(lesson, solved):
    graded = assignment(lesson).cells[-1]
    verdict = SimpleNamespace(solved=solved, message="That is no sum.")
    names = {"ex": SimpleNamespace(adding=SimpleNamespace(check=lambda answer: verdict)), "my_sum": 3}
    if solved:
        exec(graded.source, names)
    else:
        with pytest.raises(AssertionError, match=r"That is no sum\."):
            exec(graded.source, names)


def test_all_other_cells_and_the_lesson_itself_stay_as_they_are(lesson):
    before = nbformat.writes(lesson)
    assert [cell.source for cell in assignment(lesson).cells[:3]] == [cell.source for cell in lesson.cells[:3]]
    assert nbformat.writes(lesson) == before


def test_a_lesson_without_exercises_is_refused():
    with pytest.raises(ValueError, match="an assignment needs exercises, but this lesson has no line"):
        assignment(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 + 1")]))


def test_the_lesson_itself_is_not_overwritten(lesson, tmp_path, capsys):
    nbformat.write(lesson, tmp_path / "lesson.ipynb")
    (tmp_path / "link.ipynb").symlink_to(tmp_path / "lesson.ipynb")
    before = (tmp_path / "lesson.ipynb").read_bytes()
    for out in ("lesson.ipynb", "link.ipynb"):
        with pytest.raises(SystemExit):
            main([str(tmp_path / "lesson.ipynb"), str(tmp_path / out)])
    assert (tmp_path / "lesson.ipynb").read_bytes() == before and "is the lesson itself" in capsys.readouterr().err


@pytest.mark.parametrize("text", [None, "# Not a notebook", '{"cells": []}'], ids=["absent", "Markdown", "no notebook"])
def test_what_is_no_lesson_is_refused_in_a_sentence(tmp_path, capsys, text):
    if text is not None:
        (tmp_path / "lesson.ipynb").write_text(text)
    with pytest.raises(SystemExit):
        main([str(tmp_path / "lesson.ipynb"), str(tmp_path / "out.ipynb")])
    assert "lesson.ipynb: " in capsys.readouterr().err and not (tmp_path / "out.ipynb").exists()


def test_the_command_writes_where_nbgrader_looks_and_says_how_many(lesson, tmp_path, capsys):
    nbformat.write(lesson, tmp_path / "lesson.ipynb")
    main([str(tmp_path / "lesson.ipynb"), str(tmp_path / "source" / "one" / "lesson.ipynb")])
    nbformat.validate(nbformat.read(tmp_path / "source" / "one" / "lesson.ipynb", as_version=4))
    assert "exercises to grade: 1" in capsys.readouterr().out


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_every_lesson_makes_an_assignment(path):
    pytest.importorskip("course_utils.exercises", reason="the exercises come with their own change")
    made = assignment(nbformat.read(path, as_version=4))
    nbformat.validate(made)
    ids = [cell.metadata.nbgrader.grade_id for cell in made.cells if "nbgrader" in cell.metadata]
    assert len(ids) == len(set(ids)) >= 4


def test_students_get_no_cell_that_is_meant_for_ci():
    lesson = nbformat.read(LESSONS[1], as_version=4)
    tags = [tag for cell in assignment(lesson).cells for tag in cell.metadata.get("tags", [])]
    assert "check" not in tags
