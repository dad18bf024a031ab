import itertools

import numpy as np
import pytest
import torch

from course_utils.exercises.answers import LONGEST_LIST, Wrong, whole_number, whole_numbers


@pytest.mark.parametrize("answer", [16, 16.0, np.int64(16), np.float32(16), torch.tensor(16), torch.tensor([16.0])])
def test_a_whole_number_may_come_in_any_form(answer):
    assert whole_number(answer, "how many") == 16


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (12.5, "This should be how many, a whole number, but it is 12.5."),
        ("16", "This should be how many, a number, but it is of type str: 16"),
    ],
)
def test_what_is_no_whole_number_is_wrong(answer, message):
    with pytest.raises(Wrong) as wrong:
        whole_number(answer, "how many")
    assert str(wrong.value) == message


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
