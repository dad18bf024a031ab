"""Every lesson, executed a second time with the solutions of all its exercises filled in."""

import subprocess
import sys

import lessons
import nbformat
import pytest

from course_utils.lessons.progress import NOTEBOOKS


@pytest.mark.parametrize("lesson", NOTEBOOKS)
def test_a_lesson_runs_with_all_its_solutions(tmp_path, lesson):
    path = tmp_path / f"{NOTEBOOKS[lesson]}.ipynb"
    nbformat.write(lessons.with_solutions(lesson), path)
    command = [sys.executable, "-m", "pytest", "-q", "--nbval-lax", "--nbval-current-env", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, "-c", "/dev/null", "--rootdir", tmp_path, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:]
