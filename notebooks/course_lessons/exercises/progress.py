"""Which exercises are solved in this kernel, and what comes next."""

import importlib
import sys

from course_lessons.exercises.frame import Exercise, Text

# The folders of the lessons, in the order of the course; a notebook is named after its folder.
ORDER = (
    *("start", "cpu", "gpu", "multi_gpu", "beyond_the_notebook", "tpu"),
    *("device_speed", "waiting", "worth_it", "memory", "darts"),
)
NOTEBOOKS = {folder: f"{number:02}_{folder}" for number, folder in enumerate(ORDER)}
NOTEBOOKS["start"] = "00_start_here"


def exercises_of(lesson: str) -> dict[str, Exercise]:
    """Return the exercises of a lesson's folder, one of `ORDER`, by name and in their order."""
    module = importlib.import_module(f"course_lessons.{lesson}.exercises")
    return {thing.name: thing for thing in vars(module).values() if isinstance(thing, Exercise)}


def progress() -> Text:
    """Return a line for each exercise of the lessons that this kernel has imported, and the next
    thing to do.
    """
    here = [lesson for lesson in ORDER if f"course_lessons.{lesson}.exercises" in sys.modules]
    lines, still_open = [], []
    for lesson in here:
        for one in exercises_of(lesson).values():
            name = f"{one.name} of lesson {ORDER.index(lesson)}"
            lines.append(f"{name}: {'✓ solved' if one.solved else '… not solved yet'}")
            if not one.solved:
                still_open.append(name)
    if still_open:
        lines.append(f"Next: {still_open[0]}.")
    elif here[-1:] == [ORDER[-1]]:
        lines.append("All solved.")
    elif here:
        following = ORDER[ORDER.index(here[-1]) + 1]
        lines.append(f"All solved. Next: {NOTEBOOKS[following]}.ipynb")
    return Text("\n".join(lines))
