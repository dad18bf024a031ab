"""Exercises that check themselves: they name the mistake, give hints, and show a solution."""

import ast
import html
import inspect
import re
import sysconfig
import textwrap
import traceback
from collections.abc import Callable, Generator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from course_lessons.exercises.read_answer import Wrong, expect_function, quote
from course_lessons.exercises.time_limit import TooLong, time_limit

# A checker yields, for each mistake that it knows, whether it was made and the message for it. What
# it returns at its end, if anything, opens the message of a right answer.
Mistakes = Generator[tuple[Any, str], None, Any]
Checker = Callable[[Any], Mistakes]

LIMIT_S = 90.0  # for everything that a check runs; one exercise starts two processes
# A sign and a colour for each status, so that nothing is said by colour alone.
RIGHT, WRONG, HINT, OPEN = "#009E73", "#D55E00", "#0072B2", "#767676"
SIGNS = {
    "right": ("✓", RIGHT),
    "wrong": ("✗", WRONG),
    "error": ("!", WRONG),
    "not tried": ("…", OPEN),
    "hint": ("?", HINT),
}
LIBRARIES = ("site-packages", "dist-packages", sysconfig.get_path("stdlib"), "<frozen ")


@dataclass(frozen=True)
class Verdict:
    """The result of a check, or a hint."""

    exercise: str  #: the name, such as "windows"
    status: str  #: one of `SIGNS`; "error" means that the answer raised an exception
    message: str  #: what is wrong, or what to notice next, in one to three sentences

    @property
    def solved(self) -> bool:
        """Whether the answer was right."""
        return self.status == "right"

    def __repr__(self) -> str:
        return f"{self.exercise}: {self.status}. {self.message}"

    def _repr_html_(self) -> str:
        sign, colour = SIGNS[self.status]
        head = html.escape(f"{sign} {self.exercise}: {self.status}.")
        # Text between backticks is set as code.
        message = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(self.message))
        style = f"padding:4px 12px;border-left:6px solid {colour}"
        return f'<div style="{style}"><b>{head}</b> {message}</div>'


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
        self._checker = checker
        self._hints = list(hints)
        self._solution = textwrap.dedent(solution).strip()
        self._right = right
        self._arguments = _arguments_of(self._solution)

    def check(self, answer: object = ...) -> Verdict:
        """Check an answer and say what is wrong with it, or what to notice next.

        `...`, or a function whose last line is `...`, counts as not tried yet. An exception that
        the answer raises becomes the verdict.
        """
        status, message = self._judge(answer)
        verdict = Verdict(self.name, status, message)
        self.solved = self.solved or verdict.solved
        return verdict

    def hint(self) -> Verdict:
        """Return the first hint, and at later calls the second, which nearly gives it away."""
        hint = self._hints.pop(0) if len(self._hints) > 1 else self._hints[0]
        return Verdict(self.name, "hint", hint)

    def solution(self) -> Text:
        """Return the code of a right answer, to be run in place of your own."""
        return Text(self._solution)

    def _judge(self, answer: object) -> tuple[str, str]:
        """Return the status and the message of a verdict."""
        if is_untouched(answer):
            return "not tried", f"{self.task} When you are stuck: `ex.{self.name}.hint()`"
        try:
            with time_limit(LIMIT_S):
                if self._arguments:
                    expect_function(answer, self._arguments)
                opening = _first_mistake_or_opening(self._checker(answer))
        except Wrong as wrong:
            return "wrong", str(wrong)
        except TooLong:
            after = f"Your answer was still running after {LIMIT_S:g} seconds."
            return "error", f"{after} Does a loop never end?"
        except (Exception, SystemExit) as error:
            return "error", f"Your answer raised {_describe(error)}"
        return "right", f"{opening} {self._right}".strip()


def exercise(
    first_hint: str, second_hint: str, *, solution: str, right: str
) -> Callable[[Checker], Exercise]:
    """Turn a checker into an exercise.

    The checker's docstring is the task. It takes the answer, and yields `(made, message)` for each
    mistake that it knows; the first one made is the verdict. It may also raise `Wrong`.

    Args:
        first_hint: points at the idea.
        second_hint: nearly gives it away.
        solution: code that stands above the check in the lesson's cell. Where it defines a
            function, the answer has to be a function of the same arguments.
        right: what to notice next.
    """
    return lambda checker: Exercise(checker, (first_hint, second_hint), solution, right)


def is_untouched(answer: Any) -> bool:
    """Say whether this is `...`, a tuple of nothing else, or a function that ends in `...`."""
    if inspect.isfunction(answer):
        try:
            return inspect.getsource(answer).rstrip().endswith("...")
        except OSError:  # without its source
            return False
    parts = answer if isinstance(answer, tuple) else (answer,)
    return bool(parts) and all(part is ... for part in parts)


def _arguments_of(solution: str) -> list[str]:
    """Return the arguments of the function that a solution defines, or nothing."""
    for statement in ast.parse(solution).body:
        if isinstance(statement, ast.FunctionDef):
            return [argument.arg for argument in statement.args.args]
    return []


def _first_mistake_or_opening(mistakes: Mistakes) -> str:
    """Raise Wrong with the first mistake that was made, or return what the checker returns."""
    while True:
        try:
            made, message = next(mistakes)
        except StopIteration as end:
            return end.value or ""
        if made:
            raise Wrong(message)


def _describe(error: BaseException) -> str:
    """Return what an error is, and from which line of the student's it came."""
    where = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if _is_the_students(frame):
            where = f" in line {line} of {frame.f_code.co_name}"
            break
    return f"{type(error).__name__}{where}: {quote(error)}"


def _is_the_students(frame: FrameType) -> bool:
    """Say whether a frame runs code of a notebook or file that belongs to no package."""
    of_the_course = frame.f_globals.get("__name__", "").startswith("course_")
    return not of_the_course and not any(folder in frame.f_code.co_filename for folder in LIBRARIES)
