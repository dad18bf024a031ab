"""Values as a source spells them: literals, expressions that are carried through, and choices
between two.
"""

import ast
from dataclasses import dataclass
from typing import Any

from course_utils.old_code.syntax import source


@dataclass(frozen=True)
class Expression:
    """A value that is known only when the program runs."""

    text: str

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Choice:
    """A value that depends on a test: `one if test else other`."""

    test: str
    one: Any
    other: Any

    def __repr__(self) -> str:
        one = f"({self.one!r})" if isinstance(self.one, Choice) else write(self.one)
        return f"{one} if {self.test} else {write(self.other)}"


def literal(text: str) -> Any:
    """Return what a literal stands for, and anything else as an expression."""
    try:
        return ast.literal_eval(text) if len(text) <= 1000 and text != "..." else Expression(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return Expression(text)


def value_of(node: Any) -> Any:
    """Return a literal as its value, `a if test else b` as a choice, and anything else as an
    expression.
    """
    text = source(node)
    # without its brackets
    inside = node.children[1] if node.type == "atom" and text.startswith("(") else node
    if inside.type == "test" and len(inside.children) == 5:
        one, test, other = inside.children[::2]
        return Choice(source(test), value_of(one), value_of(other))
    return literal(text)


def write(value: Any) -> str:
    """Return a value as source, strings in double quotes."""
    if isinstance(value, str):
        return f'"{value}"' if not set(value) & set('"\\\n') else repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(write, value))}]"
    return repr(value)
