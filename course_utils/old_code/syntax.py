"""What a stretch of code says, read by parso, which keeps the layout and goes on after an error:
names and calls.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

Edit = tuple[int, int, str]  # from, to, and what comes in between
_EMPTY = {"(": "()", "[": "[]"}


@dataclass(frozen=True)
class Argument:
    """One argument of a call: `name` is "" for one by position, and "*" or "**" for one that is
    unpacked.
    """

    name: str
    first: Any  # the node where it begins
    value: Any  # the node where it ends


@dataclass(frozen=True)
class Call:
    """A call as it stands."""

    name: str  # such as "pl.Trainer" or, for a method of a result, "iter().next"; "" for others
    node: Any  # the last part of the expression before the brackets
    arguments: tuple[Argument, ...]
    opening: Any  # the bracket that opens the arguments
    closing: Any  # the one that closes them; None in a text that breaks off

    def keyword(self, name: str) -> Any:
        """Return the node of the value given as `name`, or None."""
        return next((each.value for each in self.arguments if each.name == name), None)


class Code:
    """A stretch of code with the place in its part where it begins."""

    def __init__(self, offset: int, text: str):
        import parso  # here, so that the command can say that it is missing

        self.offset, self.text = offset, text
        tree: Any = parso.load_grammar(version="3.11").parse(text)
        self.nodes = list(_walk(tree))
        self.names: dict[str, list[Any]] = dict(tree.get_used_names())  # the places of each name
        self.calls = [call for node in self.nodes for call in _calls_in(node)]
        statements = [node for node in self.nodes if node.type in ("import_name", "import_from")]
        self.imports = [
            (node, _names_imported(node)) for node in statements if not getattr(node, "level", 0)
        ]
        # how much of it is no Python
        self.errors = sum(node.type.startswith("error") for node in self.nodes)
        self._starts = list(
            accumulate(map(len, parso.split_lines(text, keepends=True)), initial=offset)
        )

    def span(self, first: Any, last: Any = None) -> tuple[int, int]:
        """Return where a node begins in the part, and where it, or a later one, ends."""
        (line, column), (end_line, end_column) = first.start_pos, (last or first).end_pos
        return self._starts[line - 1] + column, self._starts[end_line - 1] + end_column

    def between(self, start: int, end: int) -> str:
        """Return the text between two places of the part."""
        return self.text[start - self.offset : end - self.offset]


def source(node: Any) -> str:
    """Return a node as it is written."""
    return node.get_code(include_prefix=False)


def _walk(tree: Any) -> Iterator[Any]:
    """Yield every node from the first to the last, without recursion: code can be nested deeply."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(getattr(node, "children", ())))


def dotted(node: Any) -> str:
    """Return the name that an expression begins with, such as "a.b" of `a.b[0]` or "a().b" of
    `a(1).b`.
    """
    return re.sub(r"(\(\)|\[\])+$", "", steps(node)[-1][0])


def names_in(node: Any) -> list[tuple[str, Any]]:
    """Return the names that an expression goes through, `a` and `a.b` of `a.b(1).c`, up to its
    first call.
    """
    found = steps(node) if node.type in ("atom_expr", "power") else []
    return [(name, last) for name, last in found if not {*name} & {*"(["}]


def steps(node: Any) -> list[tuple[str, Any]]:
    """Return the growing names of an expression, `a`, `a.b` and `a.b()` of `a.b(1)`, each with its
    last node.
    """
    first, *trailers = node.children if node.type in ("atom_expr", "power") else [node]
    found = [(first.value if first.type == "name" else "()", first)]
    for trailer in trailers:
        if trailer.type != "trailer":
            break
        name, (opening, inside, *_) = found[-1][0], trailer.children
        if opening == ".":
            found.append((f"{name}.{inside.value}", inside))
        else:
            found.append((name + _EMPTY[opening.value], trailer))
    return found


def _names_imported(statement: Any) -> list[tuple[Any, str, str]]:
    """Return what a statement imports: node, full name, and what the code calls it ("" for a star).

    `import a.b` calls it "a.": the first name alone is bound.
    """
    found = []
    for path, name in zip(
        statement.get_paths(), statement.get_defined_names() or [None], strict=False
    ):
        is_first = statement.type == "import_name" and name is path[0] and len(path) > 1
        bound = (name.value if name else "") + "." * is_first
        found.append((path[-1], ".".join(each.value for each in path), bound))
    return found


def _calls_in(node: Any) -> Iterator[Call]:
    if node.type in ("atom_expr", "power"):
        for (name, _), (_, last) in pairwise(steps(node)):
            brackets: Any = getattr(last, "children", [])
            if brackets[:1] == ["("]:
                yield Call(name, last, _arguments(brackets[1:-1]), brackets[0], brackets[-1])
    elif (
        node.type == "error_node"
    ):  # a call that breaks off, or that has something in it that is no Python
        for at, before in enumerate(node.children[:-1]):
            bracket, inside = node.children[at + 1], node.children[at + 2 : at + 3]
            if bracket == "(" and before.type in ("name", "atom_expr", "power"):
                yield Call(dotted(before), before, _arguments(inside), bracket, None)


def _arguments(nodes: list[Any]) -> tuple[Argument, ...]:
    nodes = nodes[0].children if len(nodes) == 1 and nodes[0].type == "arglist" else nodes
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


def pairs_of(node: Any) -> list[Argument]:
    """Return the pairs of a dictionary in braces as arguments; one whose key is no string is
    "*".
    """
    if node.type != "atom" or len(node.children) != 3 or node.children[1].type != "dictorsetmaker":
        return []
    inside = node.children[1].children
    found = []
    for at, colon in enumerate(inside[:-1]):
        if at and colon == ":":
            key = inside[at - 1]
            name = key.value[1:-1] if key.type == "string" and key.value[:1] in "'\"" else "*"
            found.append(Argument(name, key, inside[at + 1]))
    return found
