"""Values as a source spells them: literals, expressions that are carried through, and choices between two."""

import ast
from dataclasses import dataclass, field
from typing import Any


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

    def outcome(self, value: Any, yes: bool) -> Any:
        """Return what another value is when this test is true or false; one that depends on another test stays."""
        depends = isinstance(value, Choice) and value.test == self.test
        return (value.one if yes else value.other) if depends else value

    def __repr__(self) -> str:
        return f"{write(self.one)} if {self.test} else {write(self.other)}"


@dataclass(frozen=True)
class NewCallback:
    """A callback that takes the place of an argument, yet to be made of the caller's Lightning."""

    name: str
    arguments: dict = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"


_TERNARY = ("test", "ternary")  # what versions of parso call `a if b else c`


def value_of(node: Any, source: str) -> Any:
    """Return a literal as its value, `a if test else b` as a choice, and anything else as an expression.

    Args:
        node: of the syntax tree.
        source: the text of the node.
    """
    inside = node.children[1] if node.type == "atom" and source.startswith("(") else node  # without its brackets
    if inside.type in _TERNARY and len(inside.children) == 5:
        one, test, other = inside.children[::2]
        return Choice(_text(test), value_of(one, _text(one)), value_of(other, _text(other)))
    if len(source) <= 1000:
        try:
            return ast.literal_eval(source)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            pass
    return Expression(source)


def _text(node: Any) -> str:
    return node.get_code(include_prefix=False)


def write(value: Any) -> str:
    """Return a value as source, strings in double quotes."""
    if isinstance(value, str):
        return f'"{value}"' if not set(value) & set('"\\\n') else repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(write, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{write(key)}: {write(each)}' for key, each in value.items())}}}"
    return repr(value)
