"""Which exercises are solved in this kernel, and what comes next."""

import html
import importlib
import sys
from dataclasses import dataclass

from course_lessons.exercises import Exercise

# The notebook of each lesson's folder, in the order of the course.
ORDER = (
    "start",
    "cpu",
    "gpu",
    "multi_gpu",
    "tpu",
    "device_speed",
    "worth_it",
    "memory",
    "darts",
    "old_guides",
)
NOTEBOOKS = {folder: f"{number:02}_{folder}" for number, folder in enumerate(ORDER)} | {
    "start": "00_start_here"
}


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
        following = ORDER[max(map(ORDER.index, self.lessons), default=-1) + 1 :]
        return f"All solved. Next: {NOTEBOOKS[following[0]]}.ipynb" if following else "All solved."

    def __repr__(self) -> str:
        words = {True: "solved", False: "not solved yet"}
        return "\n".join(
            [
                *(f"lesson {n}, {one.name}: {words[one.solved]}" for n, one in self._rows()),
                self.next,
            ]
        )

    def _repr_html_(self) -> str:
        words = {True: "✓ solved", False: "… not yet"}
        rows = "".join(
            f"<tr><td>{n}</td><td>{e.name}</td><td>{words[e.solved]}</td></tr>"
            for n, e in self._rows()
        )
        table = f"<thead><tr><th>lesson</th><th>exercise</th><th>solved</th></tr></thead><tbody>{rows}</tbody>"
        return f"<table>{table}</table><p>{html.escape(self.next.replace('`', ''))}</p>"

    def _rows(self) -> list[tuple[int, Exercise]]:
        return [
            (int(NOTEBOOKS[lesson][:2]), one)
            for lesson, exercises in self.lessons.items()
            for one in exercises
        ]


def exercises_of(lesson: str) -> dict[str, Exercise]:
    """Return the exercises of a lesson's folder, one of `NOTEBOOKS`, by name and in their order."""
    module = importlib.import_module(f"course_lessons.{lesson}.exercises")
    return {thing.name: thing for thing in vars(module).values() if isinstance(thing, Exercise)}


def progress() -> Progress:
    """Return which exercises are solved, of the lessons whose exercises this kernel has
    imported.
    """
    here = [lesson for lesson in NOTEBOOKS if f"course_lessons.{lesson}.exercises" in sys.modules]
    return Progress({lesson: list(exercises_of(lesson).values()) for lesson in here})
