"""A lesson that a cell defines becomes a file."""

import linecache
import subprocess
import sys

import pytest

from course_utils.launch.notebook import save_lesson
from course_utils.launch.options import LaunchError

CELL = """%matplotlib inline
import math

@staticmethod
def helper(x):
    return math.sqrt(x)

SIZE: int = 9
print("this is not part of a lesson")

class Thing:
    value = SIZE

    def root(self):
        return [helper(number) for number in (self.value,)][0]

def make_lesson(factor=2):
    try:
        return Thing().root() * factor
    except ValueError as error:
        return error
make_lesson()
"""


@pytest.fixture
def cell():
    names = []

    def run(text, **elsewhere):
        name = f"<cell {len(names)}>"
        names.append(name)
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        code = "\n".join("" if line.startswith("%") else line for line in text.splitlines())
        namespace = dict(elsewhere)
        exec(compile(code, name, "exec"), namespace)
        return namespace["make_lesson"]

    yield run
    for name in names:
        linecache.cache.pop(name)


def test_the_definitions_of_a_cell_become_a_file_that_runs_elsewhere(cell, tmp_path, capsys):
    make_lesson = cell(CELL)
    name = save_lesson(make_lesson, tmp_path / "sub" / "saved_cell.py")
    assert name == f"{tmp_path / 'sub' / 'saved_cell.py'}:make_lesson"
    code = "import saved_cell; print(saved_cell.make_lesson())"
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path / "sub", capture_output=True, text=True)
    assert result.stdout == "6.0\n", result.stderr


def test_a_name_that_another_cell_defines_is_refused(cell, tmp_path):
    make_lesson = cell("def make_lesson():\n    return WIDTH, HEIGHT, len([])\n", WIDTH=3, HEIGHT=4)
    with pytest.raises(LaunchError, match="uses HEIGHT, WIDTH, which another cell defines"):
        save_lesson(make_lesson, tmp_path / "lesson.py")
    assert list(tmp_path.iterdir()) == []


def test_a_function_without_source_is_refused(tmp_path):
    namespace = {}
    exec("def make_lesson(): ...", namespace)
    with pytest.raises(LaunchError, match=r"the source of make_lesson\(\) cannot be found"):
        save_lesson(namespace["make_lesson"], tmp_path / "lesson.py")
