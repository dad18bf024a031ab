"""The CPU time of lesson 9's ways to train, on a clock that the test moves."""

import pytest
from course_lessons.memory import record


@pytest.fixture
def runs(monkeypatch):
    """Two runs, of 4 seconds and of others, and the order in which they ran."""
    order, now, others = [], [100.0], iter((6, 60, 7))
    monkeypatch.setattr(record.time, "process_time", lambda: now[0])

    def run(name, seconds):
        order.append(name)
        now[0] += seconds

    return {"short": lambda: run("short", 4), "long": lambda: run("long", next(others))}, order


def test_runs_take_turns_and_each_has_its_median(runs):
    both, order = runs
    assert record.cpu_times_s(both, rounds=3, enough_s=99) == {"short": 4, "long": 7}
    assert order == ["short", "long"] * 3


def test_a_slow_machine_gets_whole_rounds_but_fewer(runs):
    both, order = runs
    assert record.cpu_times_s(both, rounds=9, enough_s=15) == {"short": 4, "long": 33}
    assert order == ["short", "long"] * 2
