"""What a stretch of code says, read by parso, which keeps the layout and goes on after an error: names and calls."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import parso
from parso.tree import BaseNode

_GRAMMAR = parso.load_grammar(version="3.11")


@dataclass(frozen=True)
class Argument:
    """One argument of a call: `name` is "" for one by position, and "*" or "**" for one that is unpacked."""

    name: str
    node: Any
    value: Any


@dataclass(frozen=True)
class Call:
    """A call as it stands.

    Attributes:
        name: of what is called, such as "pl.Trainer" or, for a method of a result, "iter().next"; "" for others.
        node: the expression up to and with the call.
        arguments: in their order.
        opening: the bracket that opens the arguments.
        closing: the one that closes them; None in a text that breaks off.
    """

    name: str
    node: Any
    arguments: tuple[Argument, ...]
    opening: Any
    closing: Any

    def keyword(self, name: str) -> Any:
        """Return the node of the value given as `name`, or None."""
        return next((each.value for each in self.arguments if each.name == name), None)


@dataclass
class Code:
    """A stretch of code with the place in its part where it begins."""

    offset: int
    text: str
    calls: list[Call] = field(default_factory=list)

    def __post_init__(self):
        self.nodes = list(_walk(_GRAMMAR.parse(self.text)))
        self.calls = [call for node in self.nodes for call in _calls_in(node)]

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for line in parso.split_lines(self.text, keepends=True):
            starts.append(starts[-1] + len(line))
        return starts

    def place(self, position: tuple[int, int]) -> int:
        """Return the place in the part of a line and column."""
        return self.offset + self._starts[position[0] - 1] + position[1]

    def span(self, node: Any) -> tuple[int, int]:
        """Return where a node begins and ends in the part."""
        return self.place(node.start_pos), self.place(node.end_pos)

    def source(self, node: Any) -> str:
        """Return a node as it is written."""
        start, end = self.span(node)
        return self.text[start - self.offset : end - self.offset]

    def imports(self) -> Iterator[tuple[Any, str, str]]:
        """Yield each imported name: its node, its full name, and what the code calls it ("" for a star)."""
        for node in self.nodes:
            if node.type == "import_name":
                defined = node.get_defined_names()
                for path, name in zip(node.get_paths(), defined, strict=False):
                    whole = ".".join(each.value for each in path)
                    yield path[-1], whole, name.value if name is not path[0] or len(path) == 1 else f"{name.value}."
            elif node.type == "import_from" and not node.level:
                names = [*node.get_defined_names()] or [None]
                for path, name in zip(node.get_paths(), names, strict=False):
                    yield path[-1], ".".join(each.value for each in path), name.value if name else ""

    def classes(self) -> Iterator[tuple[Any, list[str], list[Any]]]:
        """Yield each class, the names of its bases, and its methods."""
        for node in self.nodes:
            if node.type == "classdef":
                bases = node.get_super_arglist()
                names = [] if bases is None else bases.children if bases.type == "arglist" else [bases]
                inside = getattr(node.get_suite(), "children", [])
                methods = [each.children[-1] if each.type in ("decorated", "async_stmt") else each for each in inside]
                yield node, [dotted(each) for each in names], [each for each in methods if each.type == "funcdef"]


def _walk(tree: BaseNode) -> Iterator[Any]:
    """Yield every node from the first to the last, without recursion: code can be nested deeply."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(getattr(node, "children", ())))


def dotted(node: Any) -> str:
    """Return the name that an expression begins with, such as "a.b" of `a.b[0]` or "a().b" of `a(1).b`."""
    names = [name for name, _, _ in _steps(node)]
    return names[-1] if names else ""


def _steps(node: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the growing names of an expression, each with its last node and, where it is called, the brackets."""
    children = node.children if node.type in ("atom_expr", "power") else [node]
    if children[0].type != "name":
        if len(children) == 1:
            return
        name = "()"
    else:
        name = children[0].value
        yield name, children[0], None
    for trailer in children[1:]:
        if trailer.type != "trailer":
            return
        kind = trailer.children[0].value
        if kind == ".":
            name = f"{name}.{trailer.children[1].value}"
            yield name, trailer.children[1], None
        else:
            if kind == "(":
                yield name, trailer, trailer.children
            name += "()" if kind == "(" else "[]"


def names_in(node: Any) -> list[tuple[str, Any]]:
    """Return the names that an expression goes through, `a` and `a.b` of `a.b(1).c`, up to its first call."""
    return [
        (name, last)
        for name, last, brackets in _steps(node)
        if brackets is None and not name.count("(") + name.count("[")
    ]


def statement_of(node: Any) -> Any:
    """Return the import that a name is in."""
    while node.parent is not None and node.type not in ("import_from", "import_name"):
        node = node.parent
    return node


def _calls_in(node: Any) -> Iterator[Call]:
    if node.type in ("atom_expr", "power"):
        for name, last, brackets in _steps(node):
            if brackets:
                yield Call(name, last, _arguments(brackets[1:-1]), brackets[0], brackets[-1])
    elif node.type == "error_node":  # a call that breaks off, or that has something in it that is no Python
        for at, before in enumerate(node.children[:-1]):
            bracket, inside = node.children[at + 1], node.children[at + 2 : at + 3]
            if getattr(bracket, "value", "") == "(" and before.type in ("name", "atom_expr", "power"):
                yield Call(dotted(before), before, _arguments(inside), bracket, None)


def _arguments(nodes: list[Any]) -> tuple[Argument, ...]:
    nodes = nodes[0].children if len(nodes) == 1 and nodes[0].type == "arglist" else nodes
    found = []
    for node in nodes:
        if node.type == "operator" and node.value == ",":
            continue
        first: Any = node.children[0] if node.type == "argument" else None
        if first is None or node.children[1].type != "operator":
            star = first is not None and first.type == "operator"
            found.append(Argument(first.value if star else "", node, node.children[1] if star else node))
        elif node.children[1].value == "=":  # a word before it, or in a text that is no code anything else
            found.append(Argument(first.get_code().strip(), node, node.children[2]))
        elif first.type == "operator":
            found.append(Argument(first.value, node, node.children[1]))
        else:
            found.append(Argument("", node, node))
    return tuple(found)
