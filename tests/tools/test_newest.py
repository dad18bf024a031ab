"""What `make newest` says when it could not try the lessons."""

import sys
from pathlib import Path

import pytest

from tools import newest


def test_lessons_that_could_not_be_written_have_not_passed(tmp_path, monkeypatch):
    monkeypatch.setattr(newest, "python", lambda *words, **options: 1)
    with pytest.raises(SystemExit, match="none was executed"):
        newest.failed_lessons(tmp_path)


@pytest.mark.parametrize(
    ("words", "tests", "lesson", "change", "status"),
    [
        ([], 0, 0, set(), 0),
        ([], 1, 0, set(), 1),
        (["--lessons"], 1, 0, set(), 0),
        ([], 0, 1, set(), 1),
        ([], 0, 0, {("torch", "2.0")}, 1),
    ],
)
def test_a_failed_test_a_failed_lesson_and_a_changed_package_are_failures(
    words, tests, lesson, change, status, monkeypatch, capsys
):
    def python(*asked, **options):
        if "tools/standalone.py" in asked:
            (asked[2] / "one.ipynb").touch()
            return 0
        return lesson if "one.ipynb" in asked else tests

    monkeypatch.setattr(newest, "python", python)
    monkeypatch.setattr(newest.sys, "argv", ["newest.py", *words])
    seen = iter([{("numpy", "2")} | change, {("numpy", "2")}])
    monkeypatch.setattr(newest, "installed", lambda: next(seen))
    assert newest.main() == status
    said = capsys.readouterr().out
    assert f"lessons that failed: {'one.ipynb' if lesson else 'none'}" in said
    assert f"a lesson changed: {'torch 2.0' if change else 'none'}" in said


def test_a_lesson_runs_alone_with_its_own_course_and_half_an_hour(tmp_path, monkeypatch):
    (tmp_path / "one.ipynb").touch()
    asked = []
    monkeypatch.setenv("PYTHONPATH", "another course")
    monkeypatch.setattr(newest, "python", lambda *words, **how: asked.append((words, how)))
    assert newest.failed_lessons(tmp_path) == []
    words, how = asked[-1]
    assert how["cwd"] == tmp_path and "PYTHONPATH" not in how["env"]
    assert how["env"]["PATH"].startswith(str(Path(sys.executable).parent))
    assert words[-1] == "one.ipynb" and "--ExecutePreprocessor.timeout=1800" in words
