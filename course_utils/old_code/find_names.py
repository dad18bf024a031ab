"""Find names in code that have gone or moved."""

from collections.abc import Iterator
from typing import Any

from course_utils.old_code.installed import PACKAGES, TRAINER
from course_utils.old_code.names_in_code import Names, is_guarded
from course_utils.old_code.notes import Edit, Finding, Note
from course_utils.old_code.old_names import ATTRIBUTES, advise, replacement
from course_utils.old_code.parsed_code import Code, names_in, source

# These are outdated where they are called; a type check of one is not.
_OLD_IF_CALLED = (
    "torch.autograd.Variable",
    "torch.nn.DataParallel",
    "torch.nn.parallel.DataParallel",
)


def find_imports(code: Code, names: Names) -> Iterator[Finding]:
    """Find imported names that have gone or moved; one imported alone is changed."""
    for statement, imported in code.imports:
        for each in imported:
            advice = _advise_called(each.name, each.bound, names)
            if advice is None:
                continue
            names.reported.add(each.bound or each.name)
            if is_guarded(each.node):
                continue
            edits = []
            is_alone = len(imported) == 1 and "#" not in source(statement)
            new = replacement(each.name, advice[0])
            if statement.type == "import_from" and is_alone and new:
                module, _, leaf = new.rpartition(".")
                behind = f" as {each.bound}" if each.bound != leaf else ""
                text = f"from {module} import {leaf}{behind}"
                edits = [Edit(*code.span(statement), text)]
            yield Finding(Note(each.name, *advice), code.span(each.node)[0], tuple(edits))


def find_uses(code: Code, names: Names) -> Iterator[Finding]:
    """Find names such as `torch.a.b` and attributes of a Trainer that are outdated."""
    for node in code.nodes:
        chain = names_in(node)
        head = chain[0][0] if chain else ""
        is_prose = head in ("lightning", "pytorch_lightning") and head not in names.imported
        is_annotation = chain and node.search_ancestor("tfpdef")
        if not chain or is_prose or is_annotation or head in names.shadowed:
            continue
        is_assigned = node.parent.type == "expr_stmt" and node is node.parent.children[0]
        if is_assigned and head not in ("self", *names.trainers):
            continue
        yield from _use(code, chain, names)


def _use(code: Code, chain: list[tuple[str, Any]], names: Names) -> Iterator[Finding]:
    """Find the first part of a name such as `torch.a.b` that is outdated."""
    head, first = chain[0]
    for written, last in chain[1:]:
        name = names.full(written)
        below_reported = any(name.startswith(f"{each}.") for each in names.reported)
        if head in names.reported or below_reported:
            return
        if name.startswith(f"{TRAINER}."):
            is_trainer = head in ("self", *names.trainers)
            attribute = name.removeprefix(f"{TRAINER}.").partition(".")[0]
            advice = ATTRIBUTES.get(attribute) if is_trainer else advise(name)
        else:
            advice = _advise_called(name, written, names)
        if advice and not is_guarded(first):
            if not advice[0] and not name.startswith(f"{TRAINER}."):
                advice = advise(names.full(chain[-1][0])) or advice  # of the whole name
            new = replacement(written, (advise(written) or advice)[0]) if head in PACKAGES else ""
            edits = (Edit(*code.span(first, last), new),) if new else ()
            yield Finding(Note(written, *advice), code.span(last)[0], edits)
            return


def _advise_called(name: str, written: str, names: Names) -> tuple[str, str] | None:
    if name.startswith(tuple(f"{each}." for each in _OLD_IF_CALLED)):
        return None
    if name in _OLD_IF_CALLED and not any(call.name == written for call in names.calls):
        return None
    return advise(name)
