"""`make check` stops at what fails first, and its tests start nothing."""

import subprocess
import sys

import pytest

from tools import check

LINT = ["ruff", "ruff", "mypy"]


@pytest.mark.parametrize(
    ("words", "fails", "expected"),
    [
        ((), None, [*LINT, "pytest"]),
        (("lint",), None, LINT),
        ((), "mypy", LINT),
        ((), "ruff", LINT[:1]),
    ],
)
def test_each_command_runs_until_one_fails(words, fails, expected, monkeypatch):
    ran = []

    def run(command, cwd):
        assert command[:2] == [sys.executable, "-m"] and (cwd / "pyproject.toml").exists()
        ran.append(command[2:])
        return subprocess.CompletedProcess(command, 3 if command[2] == fails else 0)

    monkeypatch.setattr(check.subprocess, "run", run)
    assert check.main(*words) == (3 if fails else 0)
    assert [command[0] for command in ran] == expected
    markers = {"process", "slow", "browser", "notebook", "long"}
    for command in ran[3:]:
        assert set(command[command.index("-m") + 1].split(" and ")) == {f"not {m}" for m in markers}
