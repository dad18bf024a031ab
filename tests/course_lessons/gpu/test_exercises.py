"""What an exercise of lesson 2 says of a tensor that stayed behind, beside its table of answers."""

import pytest
from course_lessons.gpu.exercises import _which_one

TENSOR = "argument 'other' of shape (4, 8) on cpu"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("at /tmp/ipykernel_7/14.py:9: x + y", "made in line 9 of your cell: x + y"),
        ("at /tmp/ipython-input-5-14.py:9: x + y", "made in line 9 of your cell: x + y"),  # Colab
        ("at <ipython-input-5-1a2b>:9: x + y", "made in line 9 of your cell: x + y"),
        ("at mine/net.py:9: x + y", "made in line 9 of net.py: x + y"),
        ("before the rehearsal began", "made before the rehearsal began."),
    ],
)
def test_where_a_tensor_was_made_is_told_as_a_learner_knows_the_place(made, said):
    error = RuntimeError("Expected all tensors to be on the same device")
    error.__notes__ = [
        f"rehearsal: which one: {TENSOR}, made {made}",
        "rehearsal: the fix: move it",
    ]
    assert _which_one(error) == f"It is {TENSOR}, {said}"
    assert _which_one(RuntimeError("of a real GPU")) == ""
