import linecache
import re
import signal
import sys
import time
import types
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import numpy as np
import pytest
import torch
from course_lessons.exercises import frame
from course_lessons.exercises.frame import Verdict, exercise, is_untouched
from course_lessons.exercises.progress import progress
from course_lessons.exercises.read_answer import (
    Wrong,
    expect,
    expect_function,
    number_of,
    quote,
    same,
)
from course_lessons.exercises.time_limit import TooLong, time_limit
from course_lessons.gpu.exercises import moves


@exercise(
    "Think of six.", "Six times seven.", solution="answer = 42", right="Now multiply matrices."
)
def product(answer):
    """Multiply six and seven."""
    expect(answer, int, "a whole number")
    if answer == 13:
        raise Wrong("That is the sum.")
    yield 1 / answer < 0, "It is positive."
    return "True."


@exercise(
    "Take it out.",
    "next(iter(numbers))",
    solution="def my_first(numbers):\n    return numbers[0]",
    right="Yes.",
)
def first(answer):
    """Write my_first(numbers): the first of them."""
    said = answer([7, 8])
    yield said == 8, "That is the last."
    yield said != 7, f"{8 // (said - 8)} is not it."
    yield from (("x" in str(said), "A number is no text.") for _ in range(2))


def adds(a, b):
    return a + b


def test_a_verdict_shows_its_sign_and_word_and_escapes_its_text():
    verdict = Verdict("windows", "wrong", "<b>no</b>")
    assert repr(verdict) == "windows: wrong. <b>no</b>"
    assert "✗ windows: wrong." in verdict._repr_html_()
    assert "&lt;b&gt;no" in verdict._repr_html_()
    shown = Verdict("a", "wrong", "write `x < y`, not")._repr_html_()
    assert "write <code>x &lt; y</code>, not" in shown


@pytest.mark.parametrize(
    "answer",
    [3, 3.0, np.float32(3), np.array(3), torch.tensor(3), torch.tensor([3.0], requires_grad=True)],
)
def test_a_number_is_read_in_whichever_form_it_comes(answer):
    assert number_of(answer, "a number") == 3.0


@pytest.mark.parametrize("answer", ["3", None, [3], float("nan"), float("inf"), torch.ones(2)])
def test_what_is_no_finite_number_is_wrong(answer):
    with pytest.raises(Wrong, match="This should be the median"):
        number_of(answer, "the median")


def test_an_error_is_a_verdict_and_what_was_solved_once_stays_solved():
    verdicts = [product.check(answer) for answer in (..., "6", 13, 0, 42, 13)]
    said = [each.status for each in verdicts]
    assert said == ["not tried", "wrong", "wrong", "error", "right", "wrong"]
    assert product.solved
    assert verdicts[4].message == "True. Now multiply matrices."
    assert "Your answer raised ZeroDivisionError" in verdicts[3].message


def test_only_a_line_of_the_students_is_named():
    message = moves.check((torch.nn.Linear(8, 3), torch.ones(2, 9))).message
    assert message.startswith("Your answer raised RuntimeError: mat1 and mat2 shapes")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (3, "should be a function of (x, y), but it is of type int: 3"),
        (lambda x: x, "should be a function of (x, y), but yours takes (x)."),
    ],
)
def test_what_cannot_be_called_as_asked_is_wrong(function, message):
    with pytest.raises(Wrong) as wrong:
        expect_function(function, ["x", "y"])
    assert message in str(wrong.value)


def test_an_answer_is_quoted_in_one_short_line():
    assert quote("not equal:\n\n  1 and 2\n") == "not equal: 1 and 2"
    assert quote("x" * 160) == "x" * 160 and quote("x" * 161) == "x" * 157 + "..."


def test_tensors_are_the_same_up_to_rounding_and_in_one_shape():
    assert same(torch.zeros(3), torch.zeros(3) + 0.9e-4)
    assert not same(torch.zeros(3), torch.zeros(3) + 1.1e-4)
    assert not same(torch.ones(3), torch.ones(1))


UNTOUCHED = """
def my_answer(a, b=2, *, c=3):
    # to be written
    ...

def begun(a):
    return a
"""


def defined_in(source, file):
    """Return what a cell defines; as in a notebook, the source can be looked up by the file."""
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names = {}
    exec(compile(source, file, "exec"), names)
    return names


def test_a_placeholder_counts_as_untouched():
    assert is_untouched(...) and is_untouched((..., ...))
    assert is_untouched(defined_in(UNTOUCHED, "<a cell>")["my_answer"])


@pytest.mark.parametrize(
    "answer", [None, 0, "...", adds, lambda x: x, print, int, [], (), (..., 1)]
)
def test_an_answer_counts_as_tried(answer):
    assert not is_untouched(answer)
    assert not is_untouched(defined_in(UNTOUCHED, "<another cell>")["begun"])


def test_the_second_hint_follows_the_first_and_stays():
    hints = [first.hint() for _ in range(3)]
    said = ["Take it out.", "next(iter(numbers))", "next(iter(numbers))"]
    assert [(each.status, each.message) for each in hints] == [("hint", each) for each in said]


def test_the_first_mistake_that_was_made_is_the_verdict():
    assert first.check(lambda numbers: numbers[0]).solved
    assert first.check(lambda numbers: numbers[-1]) == Verdict(
        "first", "wrong", "That is the last."
    )
    assert first.check(lambda numbers: 10).message == "4 is not it."
    assert "function of (numbers), but yours takes ()." in first.check(lambda: 7).message


def test_an_error_names_the_line_of_the_answer_that_raised_it(monkeypatch):
    # as if the checker of this file were a library's
    monkeypatch.setattr(frame, "LIBRARIES", (*frame.LIBRARIES, __file__))
    names = defined_in("def my_first(numbers):\n    a = 1\n    return a / 0", "<a third cell>")
    verdict = first.check(names["my_first"])
    assert verdict.message == (
        "Your answer raised ZeroDivisionError in line 3 of my_first: division by zero"
    )


needs_alarm = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a system's timer")


@needs_alarm
def test_a_loop_without_end_is_stopped(monkeypatch):
    monkeypatch.setattr(frame, "LIMIT_S", 0.1)

    def my_first(numbers):
        while True:
            with suppress(Exception):
                time.sleep(600)

    assert "still running after 0.1 seconds" in first.check(my_first).message
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(100.0):
        assert 50 < signal.getitimer(signal.ITIMER_REAL)[0] <= 100
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
    assert signal.getsignal(signal.SIGALRM) is before


def test_a_check_may_take_a_minute_and_a_half(monkeypatch):
    @contextmanager
    def over_at_once(seconds):
        raise TooLong
        yield

    monkeypatch.setattr(frame, "time_limit", over_at_once)
    assert "still running after 90 seconds" in first.check(lambda numbers: numbers[0]).message


def test_an_answer_is_checked_outside_of_the_main_thread_too():
    with ThreadPoolExecutor(1) as thread:  # where no signal can be set
        assert thread.submit(first.check, lambda numbers: numbers[0]).result().solved


def test_an_answer_that_ends_python_gets_a_verdict():
    assert "Your answer raised SystemExit" in first.check(lambda numbers: sys.exit(1)).message


def test_the_stop_button_stops_a_check():
    with pytest.raises(KeyboardInterrupt):
        first.check(lambda numbers: signal.raise_signal(signal.SIGINT))


def test_progress_shows_the_lessons_of_this_kernel(monkeypatch):
    module = types.ModuleType("course_lessons.cpu.exercises")
    module.product = product
    for name in list(sys.modules):
        if re.fullmatch(r"course_lessons\.\w+\.exercises", name):
            monkeypatch.delitem(sys.modules, name)
    assert progress() == ""
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(product, "solved", False)
    assert progress() == "product of lesson 1: … not solved yet\nNext: product of lesson 1."
    monkeypatch.setattr(product, "solved", True)
    assert progress() == "product of lesson 1: ✓ solved\nAll solved. Next: 02_gpu.ipynb"
    monkeypatch.setitem(sys.modules, "course_lessons.darts.exercises", module)  # the last lesson
    assert progress().endswith("product of lesson 10: ✓ solved\nAll solved.")
