import random
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from course_lessons.exercises import Exercise, Verdict, answers, exercise, frame, sandbox
from course_lessons.exercises.frame import _described, is_untouched
from course_lessons.exercises.progress import NOTEBOOKS, Progress, exercises_of, progress
from course_lessons.exercises.read_answer import (
    Wrong,
    expect,
    expect_function,
    number_of,
    quote,
    same,
    truth_of,
)
from course_lessons.exercises.sandbox import TooLong, time_limit

pytestmark = pytest.mark.process


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


def untouched_function(a, b=2, *, c=3):
    """Do something."""
    ...


def adds(a, b):
    return a + b


@pytest.mark.parametrize(
    "answer", [..., untouched_function, lambda x: ..., lambda: None, (..., ...)]
)
def test_a_placeholder_counts_as_untouched(answer):
    assert is_untouched(answer)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        0,
        "...",
        adds,
        lambda x: x,
        lambda: 5,
        print,
        int,
        Exercise,
        [],
        {},
        (..., 1),
        {"a": ...},
    ],
)
def test_an_answer_counts_as_tried(answer):
    assert not is_untouched(answer)


def test_a_verdict_shows_its_sign_and_word_and_escapes_its_text():
    verdict = Verdict("windows", "wrong", "<b>no</b>")
    assert repr(verdict) == "windows: wrong. <b>no</b>"
    assert "✗ windows: wrong." in verdict._repr_html_()
    assert "&lt;b&gt;no" in verdict._repr_html_()


def test_a_verdict_sets_what_stands_between_backticks_as_code():
    assert (
        "write <code>x &lt; y</code>, not"
        in Verdict("a", "wrong", "write `x < y`, not")._repr_html_()
    )


@pytest.mark.parametrize(
    "answer",
    [3, 3.0, np.float32(3), np.array(3), torch.tensor(3), torch.tensor([3.0], requires_grad=True)],
)
def test_a_number_is_read_in_whichever_form_it_comes(answer):
    assert number_of(answer, "a number") == 3.0


@pytest.mark.parametrize(
    "answer", [True, "3", None, [3], float("nan"), float("inf"), torch.ones(2), 1j]
)
def test_what_is_no_finite_number_is_wrong(answer):
    with pytest.raises(Wrong, match="This should be the median"):
        number_of(answer, "the median")


@pytest.mark.parametrize("answer", [True, np.True_, torch.tensor(True), torch.tensor([[True]])])
def test_yes_is_read_in_whichever_form_it_comes(answer):
    assert truth_of(answer) is True
    assert truth_of(False) is False


@pytest.mark.parametrize("answer", [None, 1, "yes", torch.tensor([True, False]), torch.ones(1)])
def test_what_is_neither_yes_nor_no_is_wrong(answer):
    with pytest.raises(Wrong, match="True or False, but it"):
        truth_of(answer)


def test_whatever_an_answer_changes_for_the_whole_process_is_changed_back(monkeypatch):
    # a copy of this process would change nothing here
    monkeypatch.setattr(frame, "can_run_apart", lambda: False)

    @exercise("One.", "Two.", solution="", right="done")
    def careless(answer):
        answer()
        yield from ()

    def change_everything():
        torch.set_num_threads(torch.get_num_threads() + 1)
        torch.set_default_device("meta")
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        torch.manual_seed(1)
        random.seed(1)

    torch.manual_seed(0)
    random.seed(0)
    expected, threads = (torch.rand(1), random.random()), torch.get_num_threads()
    torch.manual_seed(0)
    random.seed(0)
    assert careless.check(change_everything).solved
    assert (torch.rand(1), random.random()) == expected
    assert torch.get_num_threads() == threads
    assert torch.get_default_dtype() == torch.float32
    assert torch.is_grad_enabled()
    assert torch.ones(1).device.type == "cpu"
    assert torch.get_default_device().type == "cpu", "Lightning asks this for every module"


def test_a_check_never_raises_and_what_was_solved_once_stays_solved():
    verdicts = [product.check(answer) for answer in (..., "6", 13, 0, 42, 13)]
    assert [each.status for each in verdicts] == [
        "not tried",
        "wrong",
        "wrong",
        "error",
        "right",
        "wrong",
    ]
    assert product.solved
    assert verdicts[4].message == "True. Now multiply matrices."
    assert "Your answer raised ZeroDivisionError" in verdicts[3].message


def test_a_checker_that_yields_is_asked_until_a_mistake_was_made():
    assert first.check(lambda numbers: numbers[0]).solved
    assert first.check(lambda numbers: numbers[-1]) == Verdict(
        "first", "wrong", "That is the last."
    )
    assert first.check(lambda numbers: 10).message == "4 is not it."


def test_an_answer_is_a_function_of_the_same_arguments_as_the_solution():
    verdict = first.check(lambda: 7)
    assert (
        verdict.status == "wrong"
        and "should be a function of (numbers), but yours takes ()." in verdict.message
    )


def test_the_end_of_an_iterator_is_an_error_of_the_answers_and_not_of_the_checkers():
    assert "raised StopIteration in line" in first.check(lambda numbers: next(iter([]))).message


def test_an_error_names_the_line_of_the_answer_that_raised_it():
    names = {}
    exec(compile("def my_works(multiply):\n    a = 1\n    return a / 0", "<a cell>", "exec"), names)
    verdict = exercises_of("start")["works"]._judge(names["my_works"])
    assert verdict == (
        "error",
        "Your answer raised ZeroDivisionError in line 3 of my_works: division by zero",
    )
    assert _described(ValueError("raised nowhere")) == "ValueError: raised nowhere"


def test_an_error_calls_what_the_exercise_gave_by_its_name_alone():
    verdict = exercises_of("start")["works"].check(lambda multiply: multiply(1))
    assert verdict.message.endswith(": multiply() missing 1 required positional argument: 'b'")


def test_a_function_that_is_still_to_be_written_is_not_told_of_an_answer_that_it_brings_back():
    def my_predict(model, x, device):
        raise NotImplementedError

    assert (
        "raised NotImplementedError in line"
        in exercises_of("gpu")["predict"].check(my_predict).message
    )


def test_an_answer_that_asks_for_a_gpu_is_not_told_of_processes_that_it_never_started(monkeypatch):
    error = RuntimeError(
        "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' "
        # PyTorch, of every copy of a process that has looked for a GPU, and found none
        "start method"
    )
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    assert (
        _described(error) == "RuntimeError: it asks for a CUDA device, and PyTorch sees none here"
    )
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)  # here a copy is the student's own
    assert "in forked subprocess" in _described(error)


def test_a_hint_is_shown_in_a_box_as_a_verdict_is():
    hint = Verdict("windows", "first hint", "try `x < y`.")
    assert repr(hint) == "windows: first hint. try `x < y`."
    assert "<b>? windows: first hint.</b> try <code>x &lt; y</code>." in hint._repr_html_()


def test_an_exercise_shows_its_task():
    assert repr(product).startswith("product: Multiply six and seven.")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (3, "but 3 is not a callable object"),
        (lambda x: x, "should be a function of (x, y), but yours takes (x)."),
    ],
)
def test_what_cannot_be_called_as_asked_is_wrong(function, message):
    with pytest.raises(Wrong) as wrong:
        expect_function(function, "x", "y")
    assert message in str(wrong.value)


def test_what_can_be_called_as_asked_passes():
    expect_function(adds, "x", "y")
    expect_function(max, "x", "y")


def test_an_answer_of_several_lines_is_quoted_in_one():
    assert quote("not equal:\n\n  1 and 2\n") == "not equal: 1 and 2"


def test_a_long_answer_is_quoted_in_short():
    assert len(quote("x" * 1000)) == answers.LONGEST_QUOTE


@pytest.mark.parametrize("system", ["Linux", "Windows"])
def test_a_loop_without_end_is_stopped(monkeypatch, system):
    if system == "Windows":
        monkeypatch.delattr(signal, "pthread_kill")
    with pytest.raises(TooLong), time_limit(0.2):
        while True:
            time.sleep(0.01)


def test_an_answer_that_catches_everything_is_stopped_as_well():
    turns = 0
    with pytest.raises(TooLong), time_limit(0.1):
        while True:
            turns += 1
            try:
                while True:
                    time.sleep(0.01)
            except BaseException:
                if turns == 2:
                    raise
    assert turns == 2


def test_a_long_sleep_is_stopped():
    start_s = time.monotonic()
    with pytest.raises(TooLong), time_limit(0.2):
        time.sleep(600)
    assert time.monotonic() - start_s < 300


def test_ctrl_c_stays_ctrl_c():
    with pytest.raises(KeyboardInterrupt), time_limit(60):
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_is_left_as_it_was():
    before = signal.getsignal(signal.SIGINT)
    with time_limit(60):
        pass
    assert signal.getsignal(signal.SIGINT) is before
    assert threading.active_count() == len(threading.enumerate())


def test_outside_of_the_main_thread_nothing_is_limited():
    seen = []

    def work():
        with time_limit(0.05):
            time.sleep(0.1)
            seen.append("done")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == ["done"]
    assert sandbox.AGAIN_S > 0


def test_every_lesson_has_a_folder_and_a_notebook():
    root = Path(__file__).resolve().parents[2]
    folders = {path.parent.name for path in root.glob("notebooks/course_lessons/*/exercises.py")}
    assert folders == set(NOTEBOOKS)
    assert list(NOTEBOOKS.values()) == sorted(path.stem for path in root.glob("notebooks/*.ipynb"))


def test_progress_shows_the_lessons_of_this_kernel(monkeypatch):
    for lesson in NOTEBOOKS:
        monkeypatch.delitem(sys.modules, f"course_lessons.{lesson}.exercises", raising=False)
    assert progress().lessons == {}
    ones = list(exercises_of("cpu").values())
    found = progress()
    assert found.lessons == {"cpu": ones}
    assert found.next == f"Next: {ones[0].name} of lesson 1. {ones[0].task}"
    assert f"lesson 1, {ones[0].name}: not solved yet" in repr(found)
    assert f"<td>{ones[0].name}</td><td>… not yet</td>" in found._repr_html_()


def test_after_the_last_exercise_comes_the_next_lesson():
    solved = Exercise(lambda answer: iter(()), ("", ""), "", "Yes.")
    assert solved.check(1).solved
    assert Progress({"cpu": [solved]}).next == "All solved. Next: 02_gpu.ipynb"
    assert Progress({"old_guides": [solved]}).next == "All solved."


def test_tensors_are_the_same_up_to_rounding_and_in_one_shape():
    assert same(torch.ones(3), torch.ones(3) + 1e-6)
    assert not same(torch.ones(3), torch.ones(3) + 1e-3)
    assert not same(torch.ones(3), torch.ones(1))
