"""Every lesson, executed a second time with the solutions of all its exercises filled in."""

import subprocess
import sys
from pathlib import Path

import lessons
import nbformat
import pytest

from course_utils.exercises import LESSONS


def run_solved(lesson: str, folder: Path) -> subprocess.CompletedProcess:
    path = folder / f"{LESSONS[lesson]}.ipynb"
    nbformat.write(lessons.with_solutions(lesson), path)
    command = [sys.executable, "-m", "pytest", "-q", "--nbval-lax", "--nbval-current-env", "-p", "no:cacheprovider"]
    return subprocess.run([*command, "-c", "/dev/null", "--rootdir", folder, path], capture_output=True, text=True)


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_runs_with_all_its_solutions(tmp_path, lesson):
    done = run_solved(lesson, tmp_path)
    assert done.returncode == 0, done.stdout[-5000:]
