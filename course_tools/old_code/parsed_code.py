"""Imports, names, calls and dictionaries of a stretch of Python, parsed with parso.

parso reads on after an error, because guides have dots in their calls and code of 2017 is Python 2.
Everything here is linear in the length of the text.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from course_tools.old_code.note import Note
from course_utils.missing_packages import explain_missing_package

with explain_missing_package():
    import parso

_MOST_STEPS = 30  # of `a.b[0](1)...`; nobody writes more
LONGEST_SOURCE = 2_000  # characters of an expression
_CONDITIONS = ("if_stmt", "try_stmt", "ternary", "or_test", "and_test")
# An `if`, or an `except`, by which code itself asks what is there, or which version is.
_GUARD = re.compile(
    r"hasattr|getattr|version|_?has_|available|TYPE_CHECKING|GREATER|ImportError", re.IGNORECASE
)
_EXCEPT = re.compile(
    r"\s*except\b(\s*|[^:]*(ImportError|ModuleNotFound|AttributeError|Exception)[^:]*):"
)


@dataclass(frozen=True)
class Argument:
    """An argument of a call: `name` is "" by position, and "*" or "**" for an unpacked one."""

    name: str
    node: Any  # where it begins
    value: Any  # the node of its value


@dataclass(frozen=True)
class Call:
    """A call, or a dictionary in braces, whose pairs are its arguments.

    Attributes:
        name: such as "pl.Trainer", "iter().next" for a method of a result, "{}" for braces.
        node: the last part of the expression before the brackets.
        arguments: all of them, in their order.
    """

    name: str
    node: Any
    arguments: tuple[Argument, ...]

    def keyword(self, name: str) -> Any:
        """Return the node of the value given as `name`, or None."""
        return next((each.value for each in self.arguments if each.name == name), None)


@dataclass(frozen=True)
class Import:
    """One imported name.

    Attributes:
        node: where the name stands.
        name: in full, such as "torch.cuda.amp.autocast"; with ".*" for a star.
        bound: what the code calls it; "" for a star, and "torch" for `import torch.cuda`.
        target: what `bound` stands for.
    """

    node: Any
    name: str
    bound: str
    target: str


class Code:
    """A stretch of code that begins on a line of a file, or of a cell of a notebook."""

    def __init__(self, text: str, line: int = 1, cell: int = 0):
        self.line, self.cell = line, cell
        self.nodes = list(_walk(parso.load_grammar(version="3.11").parse(text)))
        self.leaves = [node for node in self.nodes if not hasattr(node, "children")]
        self.chains: list[list[tuple[str, Any]]] = []
        self.calls: list[Call] = []
        self.imports: list[Import] = []
        for node in self.nodes:
            if node.type in ("atom_expr", "power"):
                chain = steps(node)
                self.chains.append(chain)
                self.calls += _calls_in(chain)
            elif node.type == "dictorsetmaker":
                self.calls.append(Call("{}", node, pairs_of(node)))
            elif node.type in ("import_name", "import_from") and not getattr(node, "level", 0):
                self.imports += _names_imported(node)
        lines = text.split("\n")
        self._guarded = {number for node in self.nodes for number in _guarded_lines(node, lines)}

    def note(self, node: Any, old: str, new: str, why: str, below: int = 0) -> Note:
        """Return a note on a node, or on a line below the one where it begins."""
        return Note(old, new, why, self.line + node.start_pos[0] - 1 + below, self.cell)

    def is_guarded(self, node: Any) -> bool:
        """Say whether the code itself asks first what is there, or which version is."""
        return node.start_pos[0] in self._guarded


def _guarded_lines(node: Any, lines: list[str]) -> Iterable[int]:
    """Return the lines of a statement that asks what is there, or expects that it is not."""
    first = node.start_pos[0] if node.type in _CONDITIONS else 0
    if node.type == "try_stmt":
        headers = [lines[part.start_pos[0] - 1] for part in node.children]
        is_guard = any(_EXCEPT.match(header) for header in headers)
    else:
        is_guard = first > 0 and bool(_GUARD.search(lines[first - 1]))
    if not is_guard:
        return ()
    return range(first, node.end_pos[0] + 1) if node.type.endswith("_stmt") else (first,)


def source(node: Any) -> str:
    """Return a node as it is written, or the beginning of a long one, which is data."""
    pieces: list[str] = []
    length = 0
    for each in _walk(node):
        if not hasattr(each, "children"):
            pieces += [each.prefix if pieces else "", each.value]
            length += len(each.prefix) + len(each.value)
        if length > LONGEST_SOURCE:
            break
    return "".join(pieces)


def steps(node: Any) -> list[tuple[str, Any]]:
    """Return `a`, `a.b` and `a.b()` of `a.b(1)`, each with its last node."""
    first, *trailers = node.children if node.type in ("atom_expr", "power") else [node]
    found = [(first.value if first.type == "name" else "()", first)]
    for trailer in trailers[:_MOST_STEPS]:
        if trailer.type != "trailer":
            break
        name, (opening, inside, *_) = found[-1][0], trailer.children
        if opening == ".":
            found.append((f"{name}.{inside.value}", inside))
        else:
            found.append((name + {"(": "()", "[": "[]"}[opening.value], trailer))
    return found


def _walk(tree: Any) -> Iterator[Any]:
    """Yield every node in order, without recursion: code can be nested deeply."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(getattr(node, "children", ())))


def _calls_in(chain: list[tuple[str, Any]]) -> Iterator[Call]:
    for (name, before), (_, brackets) in pairwise(chain):
        children = getattr(brackets, "children", [])
        if children and children[0] == "(":
            yield Call(name, before, _arguments(children[1:-1]))


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


def pairs_of(node: Any) -> tuple[Argument, ...]:
    """Return the pairs of a dictionary; "*" where a key is not a plain string."""
    found = []
    parts = node.children
    for key, colon, value in zip(parts, parts[1:], parts[2:], strict=False):
        if colon == ":":
            is_plain = key.type == "string" and key.value[0] in "'\""
            found.append(Argument(key.value[1:-1] if is_plain else "*", key, value))
    return tuple(found)


def _names_imported(statement: Any) -> Iterator[Import]:
    names = statement.get_defined_names() or [None]  # none for a star
    for path, name in zip(statement.get_paths(), names, strict=False):
        full = ".".join(each.value for each in path)
        if name is None:
            yield Import(path[-1], f"{full}.*", "", "")
        else:
            binds_first = statement.type == "import_name" and name is path[0]
            yield Import(path[-1], full, name.value, name.value if binds_first else full)
