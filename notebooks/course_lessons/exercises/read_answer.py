"""Read an answer in any sensible form, or refuse it with a message for the student."""

import inspect
import itertools
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

import torch

LONGEST_QUOTE = 160  # characters of an answer, or of its error, that a message repeats
LONGEST_LIST = 10_000  # items that are read of an answer that may go on for ever


class Wrong(Exception):
    """Raised by a checker when an answer is wrong; its message is for the student."""


def quote(thing: object) -> str:
    """Return a short text for anything, on one line."""
    text = " ".join(str(thing).split())
    return text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 3] + "..."


def _found(answer: Any) -> str:
    empty = "None, which is what a function without `return` gives."
    return empty if answer is None else f"of type {type(answer).__name__}: {quote(answer)}"


def expect(answer: Any, kind: Any, what: str) -> None:
    """Raise Wrong unless the answer is of a kind, which `what` puts in words, such as "a list"."""
    if not isinstance(answer, kind):
        raise Wrong(f"This should be {what}, but it is {_found(answer)}")


def expect_pair(answer: Any, what: str) -> None:
    """Raise Wrong unless the answer is a tuple or list of two parts, which `what` names."""
    expect(answer, tuple | list, f"a pair, {what}")
    if len(answer) != 2:
        raise Wrong(f"This should be a pair, {what}, but its length is {len(answer)}.")


def expect_function(answer: Any, *names: str) -> None:
    """Raise Wrong unless the answer can be called with these arguments by position."""
    try:
        inspect.signature(answer).bind(*names)
    except TypeError as error:
        found = (
            f"yours takes {quote(inspect.signature(answer))}" if callable(answer) else quote(error)
        )
        raise Wrong(f"This should be a function of ({', '.join(names)}), but {found}.") from None
    except ValueError:  # a builtin without a signature
        pass


def number_of(answer: Any, what: str) -> float:
    """Return a number of Python, NumPy or PyTorch as a finite float, or raise Wrong.

    `what` says in words what it should be.
    """
    expected = f"This should be {what}, a number, but it is {_found(answer)}"
    if isinstance(answer, bool | str | bytes):
        raise Wrong(expected)
    plain = answer.detach() if isinstance(answer, torch.Tensor) else answer
    value = or_wrong(lambda: float(plain), expected)
    if not math.isfinite(value):
        raise Wrong(f"This should be {what}, but {value} is not a finite number.")
    return value


def whole_numbers(answer: Any, what: str) -> list[int]:
    """Return a list, range, tensor, set or generator as a list of ints, or raise Wrong."""
    plain = answer.tolist() if hasattr(answer, "tolist") else answer
    if isinstance(plain, str | dict) or not isinstance(plain, Iterable):
        raise Wrong(f"This should be {what}, but it is {_found(answer)}")
    mixed = f"This should be {what}, but not all in it are whole numbers: {quote(answer)}"
    first = itertools.islice(plain, LONGEST_LIST)
    return or_wrong(lambda: [operator.index(one) for one in first], mixed, TypeError)


def truth_of(answer: Any) -> bool:
    """Return whether a function said True or False, in Python, NumPy or PyTorch, or raise Wrong."""
    one = f"Your function should return one True or False, but it returned {quote(answer)}."
    value = or_wrong(lambda: answer.item() if hasattr(answer, "item") else answer, one)
    expect(value, bool, "True or False")
    return value


def same(one: torch.Tensor, other: torch.Tensor, within: float = 1e-4) -> bool:
    """Say whether two tensors have one shape and the same numbers, up to rounding."""
    return one.shape == other.shape and torch.allclose(one, other, atol=within)


def or_wrong(read: Callable[[], Any], message: str, errors: type[Exception] = Exception) -> Any:
    """Return what `read` returns, or raise Wrong with the message if it raises an error."""
    try:
        return read()
    except errors:
        raise Wrong(message) from None
