"""Read an answer in any sensible form, or refuse it with a message for the student."""

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

LONGEST_QUOTE = 160  # characters of an answer, or of its error, that a message repeats


class Wrong(Exception):
    """Raised by a checker when an answer is wrong; its message is for the student."""


def quote(thing: object) -> str:
    """Return a short text for anything, on one line."""
    text = " ".join(str(thing).split())
    return text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 3] + "..."


def _refuse(answer: Any, what: str) -> Wrong:
    found = f"of type {type(answer).__name__}: {quote(answer)}"
    if answer is None:
        found = "None, which is what a function without `return` gives."
    return Wrong(f"This should be {what}, but it is {found}")


def expect(answer: Any, kind: Any, what: str) -> None:
    """Raise Wrong unless the answer is of a kind, which `what` puts in words, such as "a list"."""
    if not isinstance(answer, kind):
        raise _refuse(answer, what)


def expect_pair(answer: Any, what: str) -> None:
    """Raise Wrong unless the answer is a tuple or list of two parts, which `what` names."""
    expect(answer, tuple | list, f"a pair, {what}")
    if len(answer) != 2:
        raise Wrong(f"This should be a pair, {what}, but its length is {len(answer)}.")


def expect_function(answer: Any, names: Sequence[str]) -> None:
    """Raise Wrong unless the answer can be called with these arguments by position."""
    what = f"a function of ({', '.join(names)})"
    expect(answer, Callable, what)
    signature = inspect.signature(answer)
    try:
        signature.bind(*names)
    except TypeError:
        raise Wrong(f"This should be {what}, but yours takes {signature}.") from None


def number_of(answer: Any, what: str) -> float:
    """Return a number of Python, NumPy or PyTorch as a finite float, or raise Wrong.

    `what` says in words what it should be.
    """
    plain = answer.detach() if isinstance(answer, torch.Tensor) else answer
    try:
        value = math.nan if isinstance(plain, str) else float(plain)
    except (TypeError, ValueError, RuntimeError):  # None, a list, a tensor of several numbers
        value = math.nan
    if not math.isfinite(value):
        raise _refuse(answer, f"{what}, a number")
    return value


def same(one: torch.Tensor, other: torch.Tensor, within: float = 1e-4) -> bool:
    """Say whether two tensors have one shape and the same numbers, up to rounding."""
    return one.shape == other.shape and torch.allclose(one, other, atol=within)
