import pytest
import torch
from course_lessons.tpu import compare

from course_utils.xla import start_xla

pytestmark = pytest.mark.process


def counts() -> dict:
    numbers = torch.ones(3, 7).to(start_xla())
    found = compare(
        nothing_at_all=lambda: None,
        one_sum=lambda: numbers.sum() * 3,
        one_reading=lambda: numbers.cpu(),
    )
    return found.to_dict(orient="index")


def test_a_table_has_a_row_for_each_piece_of_work_and_counts_what_each_did(in_xla):
    found = in_xla(counts)
    assert list(found) == ["nothing at all", "one sum", "one reading"]
    assert set(found["nothing at all"].values()) == {0}
    assert (found["one sum"]["compilations"], found["one sum"]["executions"]) == (1, 1)
    assert [row["from_device"] for row in found.values()] == [0, 0, 1]
    assert all(row["fallbacks"] == 0 for row in found.values())
