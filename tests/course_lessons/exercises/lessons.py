"""What the tests of the exercises share: the lessons' notebooks, and the answers that students
give.

Each lesson has a table in the folder `answers`, named as the folder of its exercises is (cpu.toml
for course_lessons/cpu):

    context = '''code that makes the names which the solutions use, as the lesson's own cells do'''

    [[EXERCISE.wrong]]
    code = "a typical wrong answer"
    message = "a part of the message that it gets"

    [[EXERCISE.right]]
    code = "a right answer that is not the solution"

Where all of a kind are short, they stand in a list with a line for each. Answers that are alike
name their template, `like = "epoch"`, and what differs from it.
The code of an answer assigns the variable that the notebook gives to `.check(...)`.
"""

import functools
import linecache
import re
import tomllib
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
def answers(lesson: str) -> dict:
    """Return the table of the answers to a lesson's exercises."""
    path = Path(__file__).parent / "answers" / f"{lesson}.toml"
    return tomllib.loads(path.read_text("utf-8"))


def given(lesson: str, name: str, kind: str) -> list[tuple[str, str]]:
    """Return the code of each right, or wrong, answer to an exercise, and what it is told."""
    found = []
    for answer in answers(lesson).get(name, {}).get(kind, []):
        code = answer.get("code", "")
        if like := answer.get("like"):
            template = answers(lesson)["templates"][like]
            code = template["text"].format(**template | answer)
        found.append((code, answer.get("message", "")))
    return found


def answer_of(lesson: str, name: str, code: str) -> object:
    """Run the lesson's context and then an answer's code, and return what it gives to the check."""
    names: dict[str, object] = {}
    exec(compile(answers(lesson)["context"], f"<context of {lesson}>", "exec"), names)
    file = f"<answer to {name} of {lesson}>"  # its source can be looked up, as a cell's can
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    exec(compile(code, file, "exec"), names)
    return names[variables(lesson)[name]]
