"""An exercise that checks itself: it says what is wrong in terms of the idea, gives hints, and
shows a solution.
"""

import ast
import html
import inspect
import re
import textwrap
import traceback
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_lessons.exercises.read_answer import Wrong, expect_function, quote
from course_lessons.exercises.sandbox import (
    TooLong,
    can_run_apart,
    everything_restored,
    in_processes,
    time_limit,
)

# Yields whether a mistake was made, and the message for it; what it returns opens the message of a
# right answer.
Mistakes = Generator[tuple[Any, str], None, Any]
Checker = Callable[[Any], Mistakes]
LIMIT_S = 20.0  # for everything that a check runs; the slowest solution takes a tenth of it
GRACE_S = 2.0  # beyond it, for an answer that is to be interrupted
STILL_RUNNING = f"Your answer was still running after {LIMIT_S:g} seconds. Does a loop never end?"
# A sign and a word beside each colour, so that nothing is said by colour alone; other verdicts have
# a "!".
SIGNS = {"not tried": ("…", "#767676"), "right": ("✓", "#009E73"), "wrong": ("✗", "#D55E00")}
HINTS = ("first hint", "second hint")
SIGNS |= dict.fromkeys(HINTS, ("?", "#0072B2"))


@dataclass(frozen=True)
class Verdict:
    """What a check found, or a hint."""

    exercise: str  #: the name, such as "windows"
    #: "not tried", "right", "wrong", "error" (the answer raised), "too long", "first hint"
    status: str
    #: what is wrong, or what to notice next, in one to three sentences for the student
    message: str

    @property
    def solved(self) -> bool:
        """Whether the answer was right."""
        return self.status == "right"

    def __repr__(self) -> str:
        return f"{self.exercise}: {self.status}. {self.message}"

    def _repr_html_(self) -> str:
        sign, colour = SIGNS.get(self.status, ("!", "#D55E00"))
        head = html.escape(f"{sign} {self.exercise}: {self.status}.")
        # What stands between backticks is set as code.
        marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(self.message))
        style = f"padding:4px 12px;border-left:6px solid {colour}"
        return f'<div class="cu-verdict" style="{style}"><b>{head}</b> {marked}</div>'


class Text(str):
    """A string that a notebook shows as the lines it has, without quotes."""

    def __repr__(self) -> str:
        return str(self)


class Exercise:
    """One exercise. Make one with the decorator `exercise`."""

    def __init__(self, checker: Checker, hints: tuple[str, str], solution: str, right: str):
        self.name = checker.__name__  #: under which the lesson knows the exercise
        self.task = " ".join((checker.__doc__ or "").split())  #: what to do, in one sentence
        self.solved = False  #: whether any check so far found the answer right
        self._checker, self._hints, self._right = checker, hints, right
        self._solution, self._next_hint = textwrap.dedent(solution).strip(), 0
        functions = [
            each for each in ast.parse(self._solution).body if isinstance(each, ast.FunctionDef)
        ]
        self._arguments = [each.arg for each in functions[0].args.args] if functions else []

    def __repr__(self) -> str:
        return f"{self.name}: {self.task}\nUse .check(your_answer), .hint() and .solution()."

    def check(self, answer: object = ...) -> Verdict:
        """Check an answer and say what is wrong with it, or what to notice next. It never raises.

        `...`, or a function whose body is `...`, counts as not tried yet.
        """
        status, message = self._judge(answer)
        verdict = Verdict(self.name, status, message.encode(errors="backslashreplace").decode())
        self.solved = self.solved or verdict.solved
        return verdict

    def hint(self) -> Verdict:
        """Return the first hint, and at later calls the second, which nearly gives it away."""
        place, self._next_hint = self._next_hint, 1
        return Verdict(self.name, HINTS[place], self._hints[place])

    def solution(self) -> Text:
        """Return the code of a right answer, to be run in place of your own."""
        return Text(self._solution)

    def _judge(self, answer: object) -> tuple[str, str]:
        if can_run_apart():
            try:
                [found] = in_processes(
                    [lambda: self._judge_here(answer)], LIMIT_S + GRACE_S, "fork"
                )
                return found or (
                    "error",
                    "Your answer ended the Python that checked it: it crashed, or called exit.",
                )
            except TooLong:
                return (
                    "too long",
                    f"{STILL_RUNNING} It did not let itself be interrupted, and was ended.",
                )
            except (OSError, EOFError):  # no room for another process, or for its file
                pass
        return self._judge_here(answer)

    def _judge_here(self, answer: object) -> tuple[str, str]:
        try:
            if is_untouched(answer):
                return "not tried", f"{self.task} When you are stuck: `ex.{self.name}.hint()`"
            with time_limit(LIMIT_S), everything_restored():
                if self._arguments:
                    expect_function(answer, *self._arguments)
                opening = _opening(self._checker(answer))
            return "right", f"{opening} {self._right}".strip()
        except Wrong as wrong:
            return "wrong", str(wrong)
        except TooLong:
            return "too long", STILL_RUNNING
        except BaseException as error:  # whatever an answer may raise, also KeyboardInterrupt
            return "error", f"Your answer raised {_described(error)}"


def exercise(
    first_hint: str, second_hint: str, *, solution: str, right: str
) -> Callable[[Checker], Exercise]:
    """Turn a checker into an exercise. The second hint nearly gives the idea away; `right` says
    what to notice next.

    The checker's docstring is the task. It takes the answer; where the solution is a function, so
    is the answer, with the same arguments. The solution is code that stands above the check in the
    lesson's cell. For each mistake that it knows, the checker yields whether it was made, and a
    message; the first that was made is the verdict. It may also raise `Wrong` with the message.
    What it returns at its end, if anything, opens the message of a right answer.
    """
    return lambda checker: Exercise(checker, (first_hint, second_hint), solution, right)


def _opening(mistakes: Mistakes) -> str:
    """Return what the checker returns at its end, or raise Wrong with the first mistake that was
    made.
    """
    while True:
        try:
            made, message = next(mistakes)
        except StopIteration as end:
            return end.value or ""
        if made:
            raise Wrong(message)


def _described(error: BaseException) -> str:
    """Return what an error is and from which line of the student's it came."""
    ours = str(Path(__file__).parents[1])  # the whole package
    # what a checker that yields turns into a RuntimeError
    if isinstance(error.__cause__, StopIteration):
        error = error.__cause__
    lines = ((frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__))
    theirs = (
        f" in line {n} of {code.co_name}"
        for code, n in lines
        if not code.co_filename.startswith(ours)
    )
    return re.sub(
        r"[\w.]+\.<locals>\.", "", f"{type(error).__name__}{next(theirs, '')}: {quote(error)}"
    )


# What a function that is still to be written is compiled to: the operations without their
# arguments.
DOES_NOTHING = {*(lambda: ...).__code__.co_code[::2]}


def is_untouched(answer: Any) -> bool:
    """Say whether this is `...`, a tuple of nothing else, or a function whose body is `...`."""
    if inspect.isfunction(answer):
        code = answer.__code__
        return DOES_NOTHING.issuperset(code.co_code[::2]) and {
            None,
            ...,
            answer.__doc__,
        }.issuperset(code.co_consts)
    return answer is ... or (type(answer) is tuple and all(part is ... for part in answer))
