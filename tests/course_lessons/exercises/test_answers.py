import numpy as np
import pytest
import torch
from course_lessons.exercises.read_answer import (
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


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (3, "This should be numbers, all of them whole numbers, but it is of type int: 3"),
        ("25", "This should be numbers, all of them whole numbers, but it is of type str: 25"),
        (
            [2.0, 5.0],
            "This should be numbers, all of them whole numbers, but it is of type list: [2.0, 5.0]",
        ),
    ],
)
def test_what_holds_no_whole_numbers_is_wrong(answer, message):
    with pytest.raises(Wrong) as wrong:
        whole_numbers(answer, "numbers")
    assert str(wrong.value) == message
