"""Names, calls and imports of a stretch of Python, parsed with parso (it tolerates errors)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import parso

from course_tools.old_code.trainer_arguments import Note

Edit = tuple[int, int, str]  # what stands between two places of a text is replaced


@dataclass(frozen=True)
class Outdated:
    """A note, its place in the text, and the edits that are safe to make; () leaves it to you."""

    note: Note
    place: int
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True)
class Argument:
    """An argument of a call: `name` is "" by position, and "*" or "**" for an unpacked one."""

    name: str
    first: Any  # the node where it begins
    value: Any  # the node of its value, where it ends


@dataclass(frozen=True)
class Call:
    """A call: `name` is such as "pl.Trainer" or, for a method of a result, "iter().next"."""

    name: str
    node: Any  # the last part of the expression before the brackets
    arguments: tuple[Argument, ...]

    def keyword(self, name: str) -> Any:
        """Return the node of the value given as `name`, or None."""
        return next((each.value for each in self.arguments if each.name == name), None)


@dataclass(frozen=True)
class Import:
    """One imported name.

    Attributes:
        node: where the name stands.
        name: in full, such as "torch.cuda.amp.autocast".
        bound: what the code calls it; "" for a star, and "torch" for `import torch.cuda`.
        target: what `bound` stands for.
    """

    node: Any
    name: str
    bound: str
    target: str


class Code:
    """A stretch of code that begins at a place of its text."""

    def __init__(self, text: str, start: int = 0):
        self.text, self.start = text, start
        self.tree: Any = parso.load_grammar(version="3.11").parse(text)
        self.nodes = list(_walk(self.tree))
        self.calls: list[Call] = []
        self.imports: list[Import] = []
        for node in self.nodes:
            if node.type in ("atom_expr", "power"):
                self.calls += _calls_in(node)
            if node.type in ("import_name", "import_from") and not getattr(node, "level", 0):
                self.imports += _names_imported(node)
        lengths = map(len, parso.split_lines(text, keepends=True))
        self._line_starts = list(accumulate(lengths, initial=start))

    def span(self, first: Any, last: Any = None) -> tuple[int, int]:
        """Return where a node begins in the text, and where it, or a later one, ends."""
        line, column = first.start_pos
        end_line, end_column = (last or first).end_pos
        return self._line_starts[line - 1] + column, self._line_starts[end_line - 1] + end_column


def source(node: Any) -> str:
    """Return a node as it is written."""
    return node.get_code(include_prefix=False)


def steps(node: Any) -> list[tuple[str, Any]]:
    """Return `a`, `a.b` and `a.b()` of `a.b(1)`, each with its last node."""
    first, *trailers = node.children if node.type in ("atom_expr", "power") else [node]
    found = [(first.value if first.type == "name" else "()", first)]
    for trailer in trailers:
        if trailer.type != "trailer":
            break
        name, (opening, inside, *_) = found[-1][0], trailer.children
        if opening == ".":
            found.append((f"{name}.{inside.value}", inside))
        else:
            found.append((name + {"(": "()", "[": "[]"}[opening.value], trailer))
    return found


def pairs_of(node: Any) -> list[Argument]:
    """Return the pairs of a dictionary in braces as arguments; "*" where a key is not a string."""
    if node.type != "dictorsetmaker":
        return []
    found = []
    for key, colon in pairwise(node.children):
        if colon == ":":
            is_plain = key.type == "string" and key.value[0] in "'\""
            name = key.value[1:-1] if is_plain else "*"
            found.append(Argument(name, key, colon.get_next_sibling()))
    return found


def _walk(tree: Any) -> Iterator[Any]:
    """Yield every node in order, without recursion: code can be nested deeply."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(getattr(node, "children", ())))


def _calls_in(node: Any) -> Iterator[Call]:
    for (name, before), (_, brackets) in pairwise(steps(node)):
        children = getattr(brackets, "children", [])
        if children and children[0] == "(":
            part = before if before.parent is node else before.parent
            yield Call(name, part, _arguments(children[1:-1]))


def _arguments(nodes: list[Any]) -> tuple[Argument, ...]:
    if len(nodes) == 1 and nodes[0].type == "arglist":
        nodes = nodes[0].children
    found = []
    for node in nodes:
        children = node.children if node.type == "argument" else [node]
        if children[0].type == "operator" and len(children) == 2:  # *a or **a
            found.append(Argument(children[0].value, node, children[1]))
        elif len(children) == 3 and children[0].type == "name" and children[1] == "=":
            found.append(Argument(children[0].value, node, children[2]))
        elif node != ",":
            found.append(Argument("", node, node))
    return tuple(found)


def _names_imported(statement: Any) -> Iterator[Import]:
    names = statement.get_defined_names() or [None]  # none for a star
    for path, name in zip(statement.get_paths(), names, strict=False):
        full = ".".join(each.value for each in path)
        bound = name.value if name else ""
        binds_first = statement.type == "import_name" and name is path[0]
        yield Import(path[-1], full, bound, bound if binds_first else full)
