"""An exercise that checks itself: it says what is wrong in terms of the idea, gives hints, and shows a solution."""

import dis
import html
import inspect
import re
import textwrap
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from course_utils.exercises.limits import TooLong, time_limit
from course_utils.exercises.restored import everything_restored

LIMIT_S = 20.0  # for everything that a check runs; the slowest solution takes a tenth of it
LONGEST_QUOTE = 160  # characters of an answer, or of its error, that a verdict repeats


class Wrong(Exception):
    """What a checker raises when an answer is wrong. Its message is for the student."""


@dataclass(frozen=True)
class Verdict:
    """What a check found.

    Attributes:
        exercise: the name, such as "windows".
        status: "not tried", "right", "wrong", "error" (the answer raised) or "too long".
        message: one to three sentences for the student: what is wrong, or what to notice next.
    """

    exercise: str
    status: str
    message: str

    @property
    def solved(self) -> bool:
        """Whether the answer was right."""
        return self.status == "right"

    def __repr__(self) -> str:
        return f"{self.exercise}: {self.status}. {self.message}"

    def _repr_html_(self) -> str:
        sign, colour = SIGNS[self.status]
        return (
            f'<div class="cu-verdict" style="{BOX}{colour}">'
            f"<b>{sign} {html.escape(self.exercise)}: {self.status}.</b> {_with_code(self.message)}</div>"
        )


def _with_code(text: str) -> str:
    """Return text for HTML, with what stands between backticks set as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


# The instructions of a function whose body is `...`, in the Pythons from 3.10 to 3.14.
DOING_NOTHING = {"RESUME", "NOP", "LOAD_CONST", "RETURN_CONST", "RETURN_VALUE"}

BOX = "padding:4px 12px;border-left:6px solid "  # the style of what a notebook shows, up to its colour
# A sign and a word beside each colour, so that nothing is said by colour alone.
SIGNS = {
    "not tried": ("…", "#767676"),
    "right": ("✓", "#009E73"),
    "wrong": ("✗", "#D55E00"),
    "error": ("!", "#D55E00"),
    "too long": ("!", "#D55E00"),
}


class Text(str):
    """A string that a notebook shows as the lines it has, without quotes."""

    def __repr__(self) -> str:
        return str(self)


class Hint(Text):
    """A hint, which a notebook shows as it shows a verdict."""

    def _repr_html_(self) -> str:
        head, _, hint = self.partition(": ")
        return f'<div class="cu-verdict" style="{BOX}#0072B2"><b>? {head}.</b> {_with_code(hint)}</div>'


class Exercise:
    """One exercise. Make one with the decorator `exercise`.

    Attributes:
        name: the name of the checker, under which the lesson knows the exercise.
        task: what to do, in one sentence.
        verdicts: of every check that was made, the last one last.
    """

    def __init__(self, checker: Callable[[object], str], hints: tuple[str, str], solution: str):
        self.name = checker.__name__
        self.task = " ".join((checker.__doc__ or "").split())
        self.verdicts: list[Verdict] = []
        self._checker, self._hints, self._solution = checker, hints, textwrap.dedent(solution).strip()
        self._hints_given = 0

    def __repr__(self) -> str:
        return f"{self.name}: {self.task}\nUse .check(your_answer), .hint() and .solution()."

    @property
    def solved(self) -> bool:
        """Whether any check so far found the answer right."""
        return any(verdict.solved for verdict in self.verdicts)

    def check(self, answer: object = ...) -> Verdict:
        """Check an answer and say what is wrong with it, or what to notice next. It never raises.

        Args:
            answer: what the task asks for. `...`, or a function whose body is `...`, counts as not tried yet.
        """
        verdict = Verdict(self.name, *self._judge(answer))
        self.verdicts.append(verdict)
        return verdict

    def hint(self) -> Hint:
        """Return the first hint, and at later calls the second, which nearly gives it away."""
        hint = self._hints[min(self._hints_given, len(self._hints) - 1)]
        self._hints_given += 1
        return Hint(f"Hint {min(self._hints_given, len(self._hints))} of {len(self._hints)}: {hint}")

    def solution(self) -> Text:
        """Return the code of a right answer, to be run in place of your own."""
        return Text(self._solution)

    def _judge(self, answer: object) -> tuple[str, str]:
        try:
            if is_untouched(answer):
                return "not tried", f"{self.task} When you are stuck: `ex.{self.name}.hint()`"
            with everything_restored(), time_limit(LIMIT_S):
                return "right", self._checker(answer)
        except Wrong as wrong:
            return "wrong", str(wrong)
        except TooLong:
            return (
                "too long",
                f"Your answer was still running after {LIMIT_S:g} seconds. Is there a loop without an end?",
            )
        except (Exception, SystemExit) as error:
            return "error", f"Your answer raised {type(error).__name__}{_where(error)}: {quote(error)}"


def exercise(*, hints: tuple[str, str], solution: str) -> Callable[[Callable[[object], str]], Exercise]:
    """Turn a checker into an exercise.

    The checker's docstring is the task. It takes the answer, raises `Wrong` with a message for each mistake that it
    knows, and returns what to notice next.

    Args:
        hints: a first hint towards the idea, and a second one that nearly gives it away.
        solution: code that stands above the check in the lesson's cell.
    """
    if len(hints) != 2 or not all(hints):
        raise ValueError(f"an exercise has two hints, but got {len(hints)}: {hints!r}.")
    return lambda checker: Exercise(checker, hints, solution)


def _where(error: BaseException) -> str:
    """Return the line of the student's code that an error came from, in words, or nothing where there is none."""
    ours = str(Path(__file__).parent)
    for frame, line in traceback.walk_tb(error.__traceback__):
        if not frame.f_code.co_filename.startswith(ours):
            return f" in line {line} of {frame.f_code.co_name}"
    return ""


def is_untouched(answer: object) -> bool:
    """Say whether this is `...`, a list, tuple or dict of nothing else, or a function whose body is `...`."""
    if answer is ...:
        return True
    if type(answer) in (list, tuple, dict):
        parts = answer.values() if type(answer) is dict else answer
        return len(answer) > 0 and all(part is ... for part in parts)
    if not inspect.isfunction(answer):
        return False
    steps = list(dis.get_instructions(answer))
    returned = [step.argval for step in steps if step.opname in ("LOAD_CONST", "RETURN_CONST")]
    return all(step.opname in DOING_NOTHING for step in steps) and all(value in (None, ...) for value in returned)


def quote(thing: object) -> str:
    """Return a short text for anything, even for what cannot describe itself."""
    try:
        text = str(thing)
    except Exception:
        text = f"something of type {type(thing).__name__} that cannot be shown"
    return text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 3] + "..."


def expect(answer: object, kind: type | tuple[type, ...], what: str) -> None:
    """Raise Wrong unless the answer is of a kind.

    Args:
        answer: of the student.
        kind: as for isinstance.
        what: the words for it, such as "a tensor".
    """
    if not isinstance(answer, kind):
        raise Wrong(f"This should be {what}, but it is of type {type(answer).__name__}: {quote(answer)}")


def expect_function(answer: object, *names: str) -> None:
    """Raise Wrong unless the answer can be called with these arguments by position."""
    if not callable(answer):
        raise Wrong(f"This should be a function of ({', '.join(names)}), but it is of type {type(answer).__name__}.")
    try:
        inspect.signature(answer).bind(*names)
    except TypeError as error:
        raise Wrong(f"Your function should take ({', '.join(names)}), but {quote(error)}.") from None
    except ValueError:  # a builtin without a signature
        pass
