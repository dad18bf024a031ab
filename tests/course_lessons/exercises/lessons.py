"""What the tests of the exercises share: the lessons' notebooks, and the answers that students
give.

Each lesson has a module in the folder `answers`, named as the folder of its exercises is (cpu.py
for course_lessons/cpu):

    CONTEXT = '''code that makes the names which the solutions use, as the lesson's own cells do'''
    WRONG = {"exercise": [("code of a typical wrong answer", "a part of the message that it gets"),
    ...]} RIGHT = {"exercise": ["code of a right answer that is not the solution", ...]}, which may
    be left out

The code of an answer assigns the variable that the notebook gives to `.check(...)`.
"""

import functools
import importlib.util
import linecache
import re
import types
from pathlib import Path

import nbformat
from course_lessons.exercises.progress import NOTEBOOKS

FOLDER = Path(__file__).parents[3] / "notebooks"
CHECK = re.compile(r"^ex\.(\w+)\.check\((\w+)\)$", re.MULTILINE)


def notebook(lesson: str) -> nbformat.NotebookNode:
    return nbformat.read(FOLDER / f"{NOTEBOOKS[lesson]}.ipynb", as_version=4)


@functools.cache
def variables(lesson: str) -> dict[str, str]:
    """Return, for each exercise of the notebook in their order, the name of the variable that it
    checks.
    """
    cells = [cell.source for cell in notebook(lesson).cells if cell.cell_type == "code"]
    return {match[1]: match[2] for source in cells for match in CHECK.finditer(source)}


@functools.cache
def answers(lesson: str) -> types.ModuleType:
    """Return the module that holds the answers to a lesson's exercises."""
    spec = importlib.util.spec_from_file_location(
        f"answers_{lesson}", Path(__file__).parent / "answers" / f"{lesson}.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer_of(lesson: str, name: str, code: str) -> object:
    """Run the lesson's context and then an answer's code, and return what it gives to the check."""
    names: dict[str, object] = {}
    exec(compile(answers(lesson).CONTEXT, f"<context of {lesson}>", "exec"), names)
    file = f"<answer to {name} of {lesson}>"  # its source can be looked up, as a cell's can
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    exec(compile(code, file, "exec"), names)
    return names[variables(lesson)[name]]
