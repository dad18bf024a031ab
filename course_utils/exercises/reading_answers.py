"""Read what students answer: the same number or list may come as Python's, NumPy's or PyTorch's."""

import itertools
import numbers
import operator
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch

from course_utils.exercises.exercise import Wrong, quote

LONGEST = 10_000  # items that are read of an answer that may go on for ever


def number(answer: object, what: str = "a number") -> float:
    """Return an answer as a float, or raise Wrong unless it is one number.

    Args:
        answer: of the student.
        what: the words for it.
    """
    one = isinstance(answer, torch.Tensor) and answer.numel() == 1
    if isinstance(answer, bool) or not (one or isinstance(answer, numbers.Real)):
        raise Wrong(f"This should be {what}, but it is of type {type(answer).__name__}: {quote(answer)}")
    return float(answer)


def whole_number(answer: object, what: str) -> int:
    """Return an answer as an int, or raise Wrong unless it is one whole number."""
    value = number(answer, what)
    if not value.is_integer():
        raise Wrong(f"This should be {what}, but it is {quote(answer)}.")
    return int(value)


def whole_numbers(answer: object, what: str) -> list[int]:
    """Return an answer as a list of ints, or raise Wrong: lists, ranges, tensors, sets and generators will do."""
    plain = answer.tolist() if hasattr(answer, "tolist") else answer
    if isinstance(plain, str | dict) or not isinstance(plain, Iterable):
        raise Wrong(f"This should be {what}, but it is of type {type(answer).__name__}: {quote(answer)}")
    try:
        return [operator.index(item) for item in itertools.islice(plain, LONGEST)]
    except TypeError:
        raise Wrong(f"This should be {what}, but not all in it are whole numbers: {quote(answer)}") from None


@contextmanager
def random_state_kept() -> Iterator[None]:
    """Let the block draw and seed as it likes, and give the kernel its random state back afterwards."""
    before = random.getstate()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        random.setstate(before)
