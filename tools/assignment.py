"""An nbgrader assignment of a lesson: `python tools/assignment.py LESSON.ipynb source/NAME/LESSON.ipynb`."""

import argparse
import importlib
import re
from pathlib import Path
from types import ModuleType

import nbformat
from nbformat import NotebookNode

IMPORT = re.compile(r"^from course_utils\.lessons\.(\w+) import exercises as ex$", re.MULTILINE)
CHECK = re.compile(r"^ex\.(\w+)\.check\((.+)\)$", re.MULTILINE)


def assignment(lesson: NotebookNode) -> NotebookNode:
    """Return a lesson whose exercises nbgrader can release, collect and grade.

    A cell with `ex.NAME.check(answer)` stays the student's, with the solution in a region that nbgrader takes out. The
    cell after it is locked, and worth a point: it asserts that the check found the answer right.

    Args:
        lesson: a notebook with the line `from course_utils.lessons.LESSON import exercises as ex`.

    Raises:
        ValueError: the lesson has no exercises.
    """
    exercises = exercises_of(lesson)
    made = nbformat.from_dict(lesson)
    made.cells = [part for cell in lesson.cells for part in _parts(cell, exercises)]
    return made


def exercises_of(lesson: NotebookNode) -> ModuleType:
    """Return the module that holds the exercises of a lesson.

    Raises:
        ValueError: the lesson has none.
    """
    sources = "\n".join(cell.source for cell in lesson.cells if cell.cell_type == "code")
    imported = IMPORT.search(sources)
    if imported is None or not CHECK.search(sources):
        raise ValueError(
            "an assignment needs exercises, but this lesson has no line "
            "`from course_utils.lessons... import exercises as ex` with cells that end in `ex.NAME.check(...)`. "
            "Take another lesson."
        )
    return importlib.import_module(f"course_utils.lessons.{imported[1]}.exercises")


def _parts(cell: NotebookNode, exercises: object) -> list[NotebookNode]:
    if "check" in cell.metadata.get("tags", []):
        return []
    check = CHECK.search(cell.source) if cell.cell_type == "code" else None
    if check is None:
        return [cell]
    name, answer = check.groups()
    solution = getattr(exercises, name).solution()
    dots = cell.source[: check.start()].rstrip()
    student = nbformat.v4.new_code_cell(
        f"{dots}\n### BEGIN SOLUTION\n{solution}\n### END SOLUTION\nex.{name}.check({answer})", id=f"{name}-answer"
    )
    graded = nbformat.v4.new_code_cell(
        f"verdict = ex.{name}.check({answer})\nassert verdict.solved, verdict.message", id=f"{name}-graded"
    )
    own = {"grade_id": name, "schema_version": 3, "solution": True, "grade": False, "locked": False, "task": False}
    student.metadata.nbgrader = own
    locked = {"grade_id": f"{name}-graded", "solution": False, "grade": True, "locked": True, "points": 1}
    graded.metadata.nbgrader = own | locked
    return [student, graded]


def main(arguments: list[str] | None = None) -> None:
    """Write the assignment of a lesson, with solutions, for `nbgrader generate_assignment`."""
    parser = argparse.ArgumentParser(prog="python tools/assignment.py", description=main.__doc__)
    parser.add_argument("lesson", type=Path, help="a notebook of this course that has exercises")
    parser.add_argument("out", type=Path, help="where nbgrader looks for it: source/ASSIGNMENT/NAME.ipynb")
    options = parser.parse_args(arguments)
    if options.out.exists() and options.out.samefile(options.lesson):
        parser.error(f"{options.out} is the lesson itself, which would be overwritten. Write source/NAME/LESSON.ipynb.")
    try:
        made = assignment(nbformat.read(options.lesson, as_version=4))
    except (OSError, ValueError) as error:  # nbformat's own error for what is no notebook is a ValueError
        parser.error(f"{options.lesson}: {error}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(made, options.out)
    graded = sum("points" in cell.metadata.get("nbgrader", {}) for cell in made.cells)
    print(f"wrote {options.out}; exercises to grade: {graded}")


if __name__ == "__main__":
    main()
