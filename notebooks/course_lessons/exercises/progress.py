"""Which exercises are solved in this kernel, and what comes next."""

import html
import importlib
import sys
from dataclasses import dataclass

from course_lessons.exercises.frame import Exercise

# The folders of the lessons, in the order of the course; a notebook is named after its folder.
ORDER = (
    *("start", "cpu", "gpu", "multi_gpu", "tpu"),
    *("device_speed", "waiting", "worth_it", "memory", "darts"),
)
NOTEBOOKS = {folder: f"{number:02}_{folder}" for number, folder in enumerate(ORDER)}
NOTEBOOKS["start"] = "00_start_here"


@dataclass(frozen=True)
class Progress:
    """Which exercises are solved: for each lesson's folder, its exercises in their order."""

    lessons: dict[str, list[Exercise]]

    @property
    def next(self) -> str:
        """What to do next, in one sentence."""
        for number, one in self._rows():
            if not one.solved:
                return f"Next: {one.name} of lesson {number}. {one.task}"
        last = max((ORDER.index(lesson) for lesson in self.lessons), default=-1)
        if last + 1 == len(ORDER):
            return "All solved."
        return f"All solved. Next: {NOTEBOOKS[ORDER[last + 1]]}.ipynb"

    def __repr__(self) -> str:
        words = {True: "solved", False: "not solved yet"}
        lines = [
            f"lesson {number}, {one.name}: {words[one.solved]}" for number, one in self._rows()
        ]
        return "\n".join([*lines, self.next])

    def _repr_html_(self) -> str:
        words = {True: "✓ solved", False: "… not yet"}
        rows = "".join(
            f"<tr><td>{number}</td><td>{one.name}</td><td>{words[one.solved]}</td></tr>"
            for number, one in self._rows()
        )
        head = "<tr><th>lesson</th><th>exercise</th><th>solved</th></tr>"
        table = f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
        return f"{table}<p>{html.escape(self.next.replace('`', ''))}</p>"

    def _rows(self) -> list[tuple[int, Exercise]]:
        """Return each exercise with the number of its lesson."""
        rows = []
        for lesson, exercises in self.lessons.items():
            rows += [(ORDER.index(lesson), one) for one in exercises]
        return rows


def exercises_of(lesson: str) -> dict[str, Exercise]:
    """Return the exercises of a lesson's folder, one of `ORDER`, by name and in their order."""
    module = importlib.import_module(f"course_lessons.{lesson}.exercises")
    return {thing.name: thing for thing in vars(module).values() if isinstance(thing, Exercise)}


def progress() -> Progress:
    """Return which exercises of the lessons that this kernel has imported are solved."""
    here = [lesson for lesson in ORDER if f"course_lessons.{lesson}.exercises" in sys.modules]
    return Progress({lesson: list(exercises_of(lesson).values()) for lesson in here})
