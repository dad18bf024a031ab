"""Every exercise of every lesson: its solution, other right answers, and typical mistakes."""

import json

import lessons
import pytest
from course_lessons.exercises.progress import NOTEBOOKS, exercises_of
from start_python import torchrun


def marks_of(exercise):
    """The answers to one exercise run in processes of their own."""
    return [pytest.mark.process] if exercise == "repair" else []


# What a script has seen and learned, as `run_two_ranks` reports it.
REPORT = """
import json
learned = [each.tolist() for each in model.parameters()] if "model" in globals() else []
print("\\n" + json.dumps({"seen": globals().get("seen", []), "weights": learned}))
"""


def run_forked_ranks(script):
    """Stand in for `run_two_ranks`, which has tests of its own: here the ranks import nothing."""
    ended = torchrun(2, "-c", script + REPORT)
    for rank in ended:
        if rank.returncode:
            raise RuntimeError(rank.stderr.strip().splitlines()[-1])
    return [json.loads(rank.stdout.splitlines()[-1]) for rank in ended]


SCENERY = lessons.FOLDER / "course_lessons"
LESSONS = [lesson for lesson in NOTEBOOKS if (SCENERY / lesson / "exercises.py").exists()]
EVERY = [(lesson, name) for lesson in LESSONS for name in exercises_of(lesson)]
SOLVED = [pytest.param(*each, marks=marks_of(each[1])) for each in EVERY]
WRONG = [
    pytest.param(lesson, name, code, message, id=f"{lesson}-{name}-{k}", marks=marks_of(name))
    for lesson, name in EVERY
    for k, (code, message) in enumerate(lessons.given(lesson, name, "wrong"), 1)
]
RIGHT = [
    pytest.param(lesson, name, code, message, id=f"{lesson}-{name}-{k}", marks=marks_of(name))
    for lesson, name in EVERY
    for k, (code, message) in enumerate(lessons.given(lesson, name, "right"), 1)
]


@pytest.fixture
def forked_ranks(monkeypatch):
    """Let answers that are scripts run in ranks that are forked."""
    monkeypatch.setattr("course_lessons.multi_gpu.exercises.run_two_ranks", run_forked_ranks)


@pytest.fixture
def fresh(monkeypatch):
    """Let the verdicts of a test be its own."""

    def take(lesson, name):
        one = exercises_of(lesson)[name]
        monkeypatch.setattr(one, "solved", False)
        monkeypatch.setattr(one, "_hints", list(one._hints))
        return one

    return take


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_notebook_holds_each_exercise_once_and_in_order(lesson):
    assert list(lessons.variables(lesson)) == list(exercises_of(lesson))


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_cells_of_the_notebook_are_untouched_answers(lesson):
    sources = [
        cell.source for cell in lessons.notebook(lesson).cells if lessons.CHECK.search(cell.source)
    ]
    for source in sources:
        above = lessons.CHECK.sub("", source)
        assert "..." in above, f"this exercise is not left open:\n{source}"


@pytest.mark.parametrize(("lesson", "name"), EVERY)
def test_an_untouched_exercise_is_not_tried_yet(fresh, lesson, name):
    one = fresh(lesson, name)
    verdict = one.check(...)
    assert verdict.status == "not tried"
    assert not one.solved
    assert one.task in verdict.message


@pytest.mark.parametrize(("lesson", "name"), SOLVED)
def test_the_solution_is_right_and_says_what_to_notice(fresh, forked_ranks, lesson, name):
    one = fresh(lesson, name)
    verdict = one.check(lessons.answer_of(lesson, name, str(one.solution())))
    assert verdict.solved, verdict
    assert len(verdict.message) > 30


@pytest.mark.parametrize(("lesson", "name", "code", "message"), RIGHT)
def test_a_right_answer_in_another_style_is_right(fresh, forked_ranks, lesson, name, code, message):
    verdict = fresh(lesson, name).check(lessons.answer_of(lesson, name, code))
    assert verdict.solved, verdict
    assert message in verdict.message


@pytest.mark.parametrize(("lesson", "name", "code", "message"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(fresh, forked_ranks, lesson, name, code, message):
    verdict = fresh(lesson, name).check(lessons.answer_of(lesson, name, code))
    assert verdict.status == "wrong", verdict
    assert message in verdict.message
