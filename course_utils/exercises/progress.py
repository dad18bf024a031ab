"""Which exercises are solved in this kernel, and what comes next."""

import html
import importlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from course_utils.exercises.exercise import Exercise

# The module of each lesson's exercises, and the lesson's notebook.
LESSONS = {
    "start": "00_start_here",
    "cpu": "01_cpu",
    "gpu": "02_gpu",
    "multi_gpu": "03_multi_gpu",
    "tpu": "04_tpu",
    "device_speed": "05_device_speed",
    "darts": "06_darts",
    "old_guides": "07_old_guides",
}
SCHEMA = 1


@dataclass(frozen=True)
class Progress:
    """Which exercises of which lessons are solved.

    Attributes:
        lessons: for each lesson's module name, whether each exercise is solved, in their order.
        tasks: the task of each exercise that this kernel knows, by (lesson, exercise).
    """

    lessons: dict[str, dict[str, bool]]
    tasks: dict[tuple[str, str], str]

    @property
    def next(self) -> str:
        """What to do next, in one sentence."""
        for lesson, exercises in self.lessons.items():
            for name, solved in exercises.items():
                if not solved:
                    task = self.tasks.get((lesson, name), "")
                    return f"Next: {name} of lesson {_number(lesson)}. {task}".strip()
        order = list(LESSONS)
        following = [order[order.index(lesson) + 1] for lesson in self.lessons if lesson != order[-1]]
        others = [lesson for lesson in following if lesson not in self.lessons]
        return f"All solved. Next: {LESSONS[others[-1]]}.ipynb" if others else "All solved."

    def __repr__(self) -> str:
        lines = [
            f"lesson {_number(lesson)}, {name}: {'solved' if solved else 'not solved yet'}"
            for lesson, exercises in self.lessons.items()
            for name, solved in exercises.items()
        ]
        return "\n".join([*lines, self.next])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{_number(lesson)}</td><td>{html.escape(name)}</td>"
            f"<td>{'✓ solved' if solved else '… not yet'}</td></tr>"
            for lesson, exercises in self.lessons.items()
            for name, solved in exercises.items()
        )
        head = "<tr><th>lesson</th><th>exercise</th><th>solved</th></tr>"
        return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table><p>{html.escape(self.next)}</p>"


def exercises_of(lesson: str) -> dict[str, Exercise]:
    """Return the exercises of a lesson by name, in their order.

    Args:
        lesson: the module's name, one of `LESSONS`.

    Raises:
        ValueError: there is no such lesson.
    """
    if lesson not in LESSONS:
        raise ValueError(f"lesson {lesson!r} was asked for, but there are: {', '.join(LESSONS)}.")
    module = importlib.import_module(f"course_utils.lessons.{lesson}.exercises")
    return {thing.name: thing for thing in vars(module).values() if isinstance(thing, Exercise)}


def progress(save: str | Path | None = None) -> Progress:
    """Return which exercises are solved, of the lessons whose exercises this kernel has imported.

    Args:
        save: a JSON file to keep the progress in: what other notebooks wrote there stays, and is shown as well.

    Raises:
        ValueError: the file holds something else. It is left as it is.
    """
    here = [lesson for lesson in LESSONS if f"course_utils.lessons.{lesson}.exercises" in sys.modules]
    known = {lesson: exercises_of(lesson) for lesson in here}
    solved = {lesson: {name: one.solved for name, one in known[lesson].items()} for lesson in here}
    if save is not None:
        solved = _kept_in(Path(save), solved)
    tasks = {(lesson, name): one.task for lesson, ones in known.items() for name, one in ones.items()}
    return Progress(solved, tasks)


def _kept_in(path: Path, solved: dict[str, dict[str, bool]]) -> dict[str, dict[str, bool]]:
    before = _read(path) if path.exists() else {}
    merged = {
        lesson: {**before.get(lesson, {}), **{k: v or before.get(lesson, {}).get(k, False) for k, v in new.items()}}
        for lesson, new in ((lesson, solved.get(lesson, {})) for lesson in LESSONS)
        if new or lesson in before
    }
    new_file = path.with_name(path.name + ".new")
    new_file.write_text(json.dumps({"course_progress": SCHEMA, "solved": merged}, indent=1) + "\n")
    new_file.replace(path)  # a reader sees the old file or the new one, never half of it
    return merged


def _read(path: Path) -> dict[str, dict[str, bool]]:
    try:
        text = json.loads(path.read_text())
        solved = text["solved"]
        fits = text["course_progress"] == SCHEMA and all(
            lesson in LESSONS and all(isinstance(value, bool) for value in names.values())
            for lesson, names in solved.items()
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} holds no progress of this course ({error}). Name another file.") from None
    if not fits:
        raise ValueError(f"{path} holds no progress that this version of the course can read. Name another file.")
    return solved


def _number(lesson: str) -> int:
    return int(LESSONS[lesson][:2])
