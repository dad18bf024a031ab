import itertools

import numpy as np
import pytest
import torch
from course_lessons.exercises.read_answer import (
    LONGEST_LIST,
    Wrong,
    expect,
    number_of,
    whole_numbers,
)


@pytest.mark.parametrize(
    "answer", [16, 16.0, np.int64(16), np.float32(16), torch.tensor(16), torch.tensor([16.0])]
)
def test_a_number_may_come_in_any_form(answer):
    assert number_of(answer, "how many") == 16


def test_a_text_is_no_number():
    with pytest.raises(Wrong) as wrong:
        number_of("16", "how many")
    assert str(wrong.value) == "This should be how many, a number, but it is of type str: 16"


@pytest.mark.parametrize(
    "read", [number_of, whole_numbers, lambda answer, what: expect(answer, list, what)]
)
def test_an_answer_of_none_is_told_what_gives_one(read):
    with pytest.raises(
        Wrong, match="but it is None, which is what a function without `return` gives"
    ):
        read(None, "how many")


@pytest.mark.parametrize(
    "answer",
    [
        [2, 5],
        (2, 5),
        {2, 5},
        range(2, 6, 3),
        torch.tensor([2, 5]),
        np.array([2, 5]),
        map(int, "25"),
        [torch.tensor(2), 5],
    ],
)
def test_whole_numbers_may_come_in_any_form(answer):
    assert whole_numbers(answer, "numbers") == [2, 5]


def test_of_an_answer_without_an_end_only_the_first_numbers_are_read():
    assert len(whole_numbers(itertools.count(), "numbers")) == LONGEST_LIST


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (3, "This should be numbers, but it is of type int: 3"),
        ("25", "This should be numbers, but it is of type str: 25"),
        ({2: 5}, "This should be numbers, but it is of type dict: {2: 5}"),
        ([2.0, 5.0], "This should be numbers, but not all in it are whole numbers: [2.0, 5.0]"),
    ],
)
def test_what_holds_no_whole_numbers_is_wrong(answer, message):
    with pytest.raises(Wrong) as wrong:
        whole_numbers(answer, "numbers")
    assert str(wrong.value) == message
