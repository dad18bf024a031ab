"""Read an answer as a whole number, or as a list of them, in whichever form it comes."""

import itertools
import operator
from collections.abc import Iterable

from course_utils.exercises.answers import number_of
from course_utils.exercises.exercise import Wrong, quote

LONGEST = 10_000  # items that are read of an answer that may go on for ever


def whole_number(answer: object, what: str) -> int:
    """Return the answer as an int; 16.0 is a whole number too.

    Args:
        answer: of the student.
        what: the words for it, such as "the number of devices".

    Raises:
        Wrong: it is no number, or not a whole one.
    """
    value = number_of(answer, what)
    if not value.is_integer():
        raise Wrong(f"This should be {what}, a whole number, but it is {quote(answer)}.")
    return int(value)


def whole_numbers(answer: object, what: str) -> list[int]:
    """Return the answer as a list of ints: lists, ranges, tensors, sets and generators will do.

    Args:
        answer: of the student.
        what: the words for it, such as "a list of line numbers".

    Raises:
        Wrong: it holds something else.
    """
    plain = answer.tolist() if hasattr(answer, "tolist") else answer
    if isinstance(plain, str | dict) or not isinstance(plain, Iterable):
        raise Wrong(f"This should be {what}, but it is of type {type(answer).__name__}: {quote(answer)}")
    try:
        return [operator.index(item) for item in itertools.islice(plain, LONGEST)]
    except TypeError:
        raise Wrong(f"This should be {what}, but not all in it are whole numbers: {quote(answer)}") from None
