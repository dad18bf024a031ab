"""Every exercise of every lesson, answered in all the ways that students answer."""

import ast
import re
import time

import lessons
import pytest
from course_lessons.exercises.progress import NOTEBOOKS, exercises_of


def marks_of(exercise):
    """The answers to one exercise run in processes of their own."""
    return [pytest.mark.process] if exercise == "repair" else []


EVERY = [(lesson, name) for lesson in NOTEBOOKS for name in exercises_of(lesson)]
SOLVED = [pytest.param(*each, marks=marks_of(each[1])) for each in EVERY]
WRONG = [
    pytest.param(lesson, name, code, message, id=f"{lesson}-{name}-{k}", marks=marks_of(name))
    for lesson, name in EVERY
    for k, (code, message) in enumerate(lessons.answers(lesson).WRONG.get(name, []), 1)
]
RIGHT = [
    pytest.param(lesson, name, code, id=f"{lesson}-{name}-{k}", marks=marks_of(name))
    for lesson, name in EVERY
    for k, code in enumerate(getattr(lessons.answers(lesson), "RIGHT", {}).get(name, []), 1)
]


class Hostile:
    """An object that fails at whatever is asked of it."""

    def __getattribute__(self, name):
        raise RuntimeError("no")

    def __call__(self, *arguments, **named):
        raise RuntimeError("no")

    def __repr__(self):
        raise RuntimeError("no")

    __eq__ = __len__ = __iter__ = __bool__ = __float__ = __array__ = __call__
    __hash__ = None


def raises(*arguments, **named):
    raise ZeroDivisionError("a mistake of the student's")


def exits(*arguments, **named):
    raise SystemExit(3)


HOSTILE = {
    "None": None,
    "a number": 3.5,
    "a text": "<script>alert(1)</script>",
    "an empty list": [],
    "an empty dict": {},
    "not a number": float("nan"),
    "a class": object,
    "an object that fails at everything": Hostile(),
    "a function without arguments": lambda: None,
    "a function of too many": lambda a, b, c, d, e, f, g: None,
    "a function that raises": raises,
    "a function that exits": exits,
    "a function that returns a text": lambda *arguments, **named: "text",
}


@pytest.fixture
def fresh(monkeypatch):
    """Let the verdicts of a test be its own."""

    def take(lesson, name):
        one = exercises_of(lesson)[name]
        monkeypatch.setattr(one, "solved", False)
        monkeypatch.setattr(one, "_next_hint", 0)
        return one

    return take


def test_the_readme_counts_the_exercises_of_which_each_lesson_has_two_to_four():
    counts = {lesson: len(exercises_of(lesson)) for lesson in NOTEBOOKS}
    assert sum(counts.values()) >= 20
    assert all(2 <= count <= 4 for count in counts.values()), counts
    readme = (lessons.FOLDER.parent / "README.md").read_text(encoding="utf-8")
    assert f"exercises, {sum(counts.values())} in all," in readme


@pytest.mark.parametrize("lesson", NOTEBOOKS)
def test_the_notebook_holds_each_exercise_once_and_in_order(lesson):
    assert list(lessons.variables(lesson)) == list(exercises_of(lesson))


@pytest.mark.parametrize("lesson", NOTEBOOKS)
def test_a_check_cell_of_the_lesson_runs_the_solution_of_every_exercise_in_it(lesson):
    sources = [
        cell.source
        for cell in lessons.notebook(lesson).cells
        if cell.id.endswith("-ex-solutions-check")
    ]
    assert len(sources) == 1 and "assert verdict.solved" in sources[0]
    answers = re.search(r"answers = (\{.*?\})", sources[0], re.DOTALL)[1]
    assert ast.literal_eval(answers) == lessons.variables(lesson)


@pytest.mark.parametrize("lesson", NOTEBOOKS)
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
def test_the_solution_is_right_and_says_what_to_notice(fresh, lesson, name):
    one = fresh(lesson, name)
    verdict = one.check(lessons.answer_of(lesson, name, str(one.solution())))
    assert verdict.solved, verdict
    assert len(verdict.message) > 30


@pytest.mark.parametrize(("lesson", "name", "code"), RIGHT)
def test_a_right_answer_in_another_style_is_right(fresh, lesson, name, code):
    verdict = fresh(lesson, name).check(lessons.answer_of(lesson, name, code))
    assert verdict.solved, verdict


@pytest.mark.parametrize(("lesson", "name"), EVERY)
def test_there_are_three_wrong_answers_with_messages_of_their_own(lesson, name):
    messages = [message for _, message in lessons.answers(lesson).WRONG.get(name, [])]
    assert len(set(messages)) >= 3, messages


@pytest.mark.parametrize(("lesson", "name", "code", "message"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(fresh, lesson, name, code, message):
    verdict = fresh(lesson, name).check(lessons.answer_of(lesson, name, code))
    assert verdict.status == "wrong", verdict
    assert message in verdict.message


def test_an_error_of_pytorchs_own_is_no_refusal_of_the_students(fresh):
    ambiguous = (
        "def my_speed_up(old, new, seconds):\n    if old() != new():\n        raise ValueError"
    )
    verdict = fresh("device_speed", "speed_up").check(
        lessons.answer_of("device_speed", "speed_up", ambiguous)
    )
    assert verdict.status == "error" and "in line 2 of my_speed_up" in verdict.message


@pytest.mark.parametrize(("lesson", "name"), EVERY)
# by its name: pytest itself would stumble over some of them
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_answer_gets_a_verdict_and_no_traceback(fresh, lesson, name, kind):
    verdict = fresh(lesson, name).check(HOSTILE[kind])
    assert verdict.status in ("wrong", "error", "not tried")
    assert "<script>" not in verdict._repr_html_()
    assert len(repr(verdict)) < 1000


@pytest.mark.parametrize(("lesson", "name"), EVERY)
def test_an_endless_loop_is_cut(fresh, monkeypatch, lesson, name):
    monkeypatch.setattr("course_lessons.exercises.frame.LIMIT_S", 0.5)

    def endless(*arguments, **named):
        while True:
            time.sleep(0.01)

    verdict = fresh(lesson, name).check(endless)
    assert verdict.status in ("wrong", "too long"), verdict


@pytest.mark.parametrize(("lesson", "name"), EVERY)
def test_there_are_two_hints_and_neither_is_the_solution(fresh, lesson, name):
    one = fresh(lesson, name)
    first, second, third = one.hint(), one.hint(), one.hint()
    assert (first.status, second.status) == ("first hint", "second hint")
    assert first != second == third
    assert str(one.solution()) not in f"{first} {second}"
