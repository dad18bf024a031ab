"""Read an answer as a number, or as yes or no, in whichever form it comes."""

import math

import torch

from course_utils.exercises.exercise import Wrong, quote


def number_of(answer: object, what: str) -> float:
    """Return the answer as a float, whether it is a number of Python, NumPy or PyTorch.

    Args:
        answer: of the student.
        what: the words for it, such as "the median in milliseconds".

    Raises:
        Wrong: it is no number, or not a finite one.
    """
    if isinstance(answer, bool | str | bytes):
        raise Wrong(f"This should be {what}, a number, but it is of type {type(answer).__name__}: {quote(answer)}")
    try:
        value = float(answer.detach() if isinstance(answer, torch.Tensor) else answer)
    except Exception:
        raise Wrong(f"This should be {what}, a number, but it is of type {type(answer).__name__}.") from None
    if not math.isfinite(value):
        raise Wrong(f"This should be {what}, but {value} is no finite number.")
    return value


def truth_of(answer: object) -> bool:
    """Return whether a function said True, whether it said so in Python, NumPy or PyTorch.

    Raises:
        Wrong: it said something else.
    """
    try:
        value = answer.item() if hasattr(answer, "item") else answer
    except Exception:
        raise Wrong(f"Your function should return one True or False, but it returned {quote(answer)}.") from None
    if not isinstance(value, bool):
        raise Wrong(f"Your function should return True or False, but it returned {quote(value)}.")
    return value
