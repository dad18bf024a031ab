import pytest
import torch
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
