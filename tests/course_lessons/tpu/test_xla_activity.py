import weakref
from types import SimpleNamespace

import pytest
import torch
from course_lessons.tpu import xla_activity
from course_lessons.tpu.xla_activity import StepTime, compare, time_steps

from course_utils.xla import start_xla


def counts() -> dict:
    numbers = torch.ones(3, 7).to(start_xla())
    works = {
        "nothing at all": lambda: None,
        "one sum": lambda: numbers.sum() * 3,
        "one reading": lambda: numbers.cpu(),
    }
    return compare(works).to_dict(orient="index")


def times() -> list[StepTime]:
    pair = torch.ones(4, 9).to(start_xla()), torch.ones(4, 9).to(start_xla())
    kept = []
    return time_steps(lambda inputs, targets: kept.append(inputs @ targets.T), [pair, pair])


def test_a_step_is_recorded_compiled_and_run_until_it_has_ended(monkeypatch):
    now = [0.0]

    def passes(seconds):
        now[0] += seconds

    class Counters:
        def __sub__(self, other):
            passes(4)  # they wait for what was sent
            return SimpleNamespace(compile_s=2.0)

    torch_xla = SimpleNamespace(sync=lambda: passes(3))
    monkeypatch.setattr(xla_activity, "import_torch_xla", lambda: torch_xla)
    monkeypatch.setattr(xla_activity, "xla_counters", Counters)
    monkeypatch.setattr(xla_activity.time, "perf_counter", lambda: now[0])
    found = time_steps(lambda inputs, targets: passes(1), [(None, None)] * 2)
    assert found == [StepTime(trace_s=1, compile_s=2, run_s=5)] * 2  # 3 + 4 - 2
    kept = []
    torch_xla.sync = lambda: kept.append(made[0]() is not None)
    made = []

    def work():
        result = torch.ones(1)
        made.append(weakref.ref(result))
        return result

    xla_activity.counted(work)
    assert kept == [True]  # XLA leaves out what nobody holds


@pytest.mark.slow
def test_a_table_has_a_row_for_each_piece_of_work_and_counts_what_each_did(in_xla):
    found = in_xla(counts)
    assert list(found) == ["nothing at all", "one sum", "one reading"]
    assert set(found["nothing at all"].values()) == {0}
    assert (found["one sum"]["compilations"], found["one sum"]["executions"]) == (1, 1)
    assert [row["from_device"] for row in found.values()] == [0, 0, 1]
    assert all(row["fallbacks"] == 0 for row in found.values())


@pytest.mark.slow
def test_only_the_first_of_two_equal_steps_compiles(in_xla):
    first, second = in_xla(times)
    assert first.compile_s > 0
    assert second.compile_s == 0
    assert all(time > 0 for time in (first.trace_s, first.run_s, second.trace_s, second.run_s))
