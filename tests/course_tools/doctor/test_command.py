"""What the command asks for, and its status, without a process."""

import sys

import pytest

from course_tools.doctor import command
from course_tools.doctor.diagnosis import Diagnosis
from course_tools.doctor.finding import Finding
from course_utils.kinds import KINDS


def run(monkeypatch, words, works=()):
    """Return the status, and what was examined for how many seconds."""
    asked = []

    def diagnose(kinds, limit_s):
        asked.append((kinds, limit_s))
        found = tuple(Finding(kind, kind in works, "works", "why", "") for kind in kinds)
        return Diagnosis("computer", "torch", (), found, 1.0)

    monkeypatch.setattr(command, "diagnose", diagnose)
    monkeypatch.setattr(sys, "argv", ["doctor", *words])
    return command.main(), *asked


@pytest.mark.parametrize(
    ("words", "works", "status", "kinds"),
    [
        ([], ["cpu"], 0, tuple(KINDS)),
        ([], [], 1, tuple(KINDS)),
        (["--require", "cuda", "--require", "cpu"], ["cpu"], 1, ("cuda", "cpu")),
        (["--require", "cuda", "--require", "cuda"], ["cuda"], 0, ("cuda",)),
    ],
)
def test_all_that_is_required_has_to_work_or_else_anything(
    words, works, status, kinds, monkeypatch, capsys
):
    assert run(monkeypatch, words, works) == (status, (kinds, 40.0))
    amount = "1 kind" if len(kinds) == 1 else f"{len(kinds)} kinds"
    assert f"Examining {amount} of device, for 40 s" in capsys.readouterr().err


@pytest.mark.parametrize("limit", ["0", "-1", "1000000", "nan"])
def test_a_limit_that_is_no_time_is_refused(limit, monkeypatch, capsys):
    with pytest.raises(SystemExit) as refused:
        run(monkeypatch, ["--limit", limit])
    assert refused.value.code == 2 and "is not a number of seconds" in capsys.readouterr().err
    assert run(monkeypatch, ["--limit", "0.5"])[1] == (tuple(KINDS), 0.5)
