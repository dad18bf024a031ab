"""Every lesson, executed a second time with the solutions of all its exercises filled in."""

import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import lessons
import nbformat
import pytest

from course_utils.exercises import LESSONS

AT_A_TIME = 2  # most cells use one core


def run_solved(lesson: str, folder: Path) -> subprocess.CompletedProcess:
    path = folder / f"{LESSONS[lesson]}.ipynb"
    nbformat.write(lessons.with_solutions(lesson), path)
    command = [sys.executable, "-m", "pytest", "-q", "--nbval-lax", "--nbval-current-env", "-p", "no:cacheprovider"]
    return subprocess.run([*command, "-c", "/dev/null", "--rootdir", folder, path], capture_output=True, text=True)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The run of each lesson, a few of them at a time."""
    pool = ThreadPoolExecutor(AT_A_TIME)
    longest_first = sorted(LESSONS, key=lambda lesson: lesson != "multi_gpu")
    yield {lesson: pool.submit(run_solved, lesson, tmp_path_factory.mktemp(lesson)) for lesson in longest_first}
    pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_runs_with_all_its_solutions(runs: dict[str, Future], lesson):
    done = runs[lesson].result()
    assert done.returncode == 0, done.stdout[-5000:]
