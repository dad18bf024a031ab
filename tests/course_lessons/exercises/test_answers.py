import numpy as np
import pytest
import torch
from course_lessons.exercises.read_answer import Wrong, expect, number_of


@pytest.mark.parametrize(
    "answer", [16, 16.0, np.int64(16), np.float32(16), torch.tensor(16), torch.tensor([16.0])]
)
def test_a_number_may_come_in_any_form(answer):
    assert number_of(answer, "how many") == 16


def test_a_text_is_no_number():
    with pytest.raises(Wrong) as wrong:
        number_of("16", "how many")
    assert str(wrong.value) == "This should be how many, a number, but it is of type str: 16"


@pytest.mark.parametrize("read", [number_of, lambda answer, what: expect(answer, list, what)])
def test_an_answer_of_none_is_told_what_gives_one(read):
    with pytest.raises(
        Wrong, match="but it is None, which is what a function without `return` gives"
    ):
        read(None, "how many")
