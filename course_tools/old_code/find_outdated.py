"""Find outdated names, arguments and keywords in code, and all else that is outdated in it."""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from course_tools.old_code.find_idioms import (
    find_async,
    find_device_strings,
    find_fourier,
    find_idioms,
    find_masks,
    find_strings,
)
from course_tools.old_code.find_in_lightning import find_hparams, find_methods, find_results
from course_tools.old_code.installed import TRAINER, accepts, missing_arguments, version
from course_tools.old_code.names_in_code import Names, class_of
from course_tools.old_code.note import Note
from course_tools.old_code.old_names import ATTRIBUTES, KEYWORDS, TABLES, Advice, advise
from course_tools.old_code.parsed_code import Argument, Call, Code, pairs_of, source
from course_tools.old_code.trainer_arguments import (
    Expression,
    known_arguments,
    removed_arguments,
    translate,
)


def find_imports(code: Code, names: Names) -> Iterator[Note]:
    """Find imported names that have gone or moved."""
    for each in code.imports:
        advice = _advise_called(each.name, each.bound, names)
        if advice and not code.is_guarded(each.node):
            yield code.note(each.node, each.name, *advice)


def find_uses(code: Code, names: Names) -> Iterator[Note]:
    """Find names such as `torch.a.b` and attributes of a Trainer that are outdated."""
    for chain in code.chains:
        node = chain[0][1].parent
        is_assigned = node.parent.type == "expr_stmt" and node is node.parent.children[0]
        found = None if is_assigned else _use(code, chain, names)
        if found and not node.search_ancestor("tfpdef"):  # not in an annotation
            yield found


def _use(code: Code, chain: list[tuple[str, Any]], names: Names) -> Note | None:
    """Return a note on the first part of a name such as `torch.a.b` that is outdated."""
    head, first = chain[0]
    imported = names.imported.get(head, "")
    if imported != head and _advise_called(imported, head, names):
        return None  # the import is reported
    for written, last in chain:
        name = names.full_name(written)
        if re.fullmatch(r"self\.use_\w+", written):
            is_ours = written not in names.assigned and names.may_be_lightnings(class_of(last))
            advice = ATTRIBUTES.get(written.removeprefix("self.")) if is_ours else None
        elif name.startswith(f"{TRAINER}."):
            is_trainer = head in ("self", *names.trainers)
            attribute = name.removeprefix(f"{TRAINER}.").partition(".")[0]
            advice = ATTRIBUTES.get(attribute) if is_trainer else advise(name)
        else:
            advice = _advise_called(name, written, names)
        if advice and not code.is_guarded(first):
            return code.note(last, written, *advice)
    return None


def _advise_called(name: str, written: str, names: Names) -> Advice | None:
    """Return the advice for a name, but none for a check of a type that still works."""
    for type_name in TABLES["fine_in_type_checks"]:
        is_check = name == type_name and written not in names.called
        if is_check or name.startswith(f"{type_name}."):
            return None
    return advise(name)


def find_trainer_arguments(code: Code, names: Names) -> Iterator[Note]:
    """Find old arguments of a Trainer, wherever they are written."""
    for call in code.calls:
        owner, _, method = names.full_name(call.name).rpartition(".")
        is_update = method == "update" and names.holds_arguments(owner)
        is_default = method == "set_defaults" and names.reads_command_line
        if is_update or is_default or names.makes_trainer(call):
            yield from _translated(code, call.arguments, names.takes_nothing_else(call))
    for node in code.nodes:
        if node.type == "expr_stmt" and len(node.children) == 3 and node.children[1] == "=":
            yield from _item(code, node, names)


def _item(code: Code, statement: Any, names: Names) -> Iterator[Note]:
    """Find `kwargs["gpus"] = 2` and `args.trainer.gpus = 2`."""
    target, _, value = statement.children
    item = re.fullmatch(r"([^\n]+)(?:\[['\"](\w+)['\"]\]|\.(\w+))", source(target))
    if item is None or names.full_name(source(target)).startswith(f"{TRAINER}."):
        return
    owner, name = item[1], item[2] or item[3]
    is_for_trainer = names.holds_arguments(owner)
    if item[3]:
        is_parsed = names.reads_command_line and owner in ("args", "hparams")
        is_for_trainer = is_parsed or (is_for_trainer and names.is_lightning)
    if name in removed_arguments() and is_for_trainer:
        yield from _translated(code, [Argument(name, target, value)])


def _translated(code: Code, arguments: Sequence[Argument], is_strict: bool = False) -> list[Note]:
    """Return what became of the arguments of a Trainer.

    Args:
        code: where they are.
        arguments: all of them, in their order.
        is_strict: whether one that no Trainer knows is reported too.
    """
    given = {each.name: each for each in arguments if each.name.isidentifier()}
    given = {name: each for name, each in given.items() if is_strict or name in known_arguments()}
    modern = translate({name: _value_of(each.value) for name, each in given.items()})
    notes = {**modern.changes, **modern.refused}
    return [_placed(code, given[old].node, note) for old, note in notes.items()]


def _placed(code: Code, node: Any, note: Note) -> Note:
    return code.note(node, note.old, note.new, note.why)


def _value_of(node: Any) -> Any:
    """Return a literal as its value, and anything else as an expression."""
    text = source(node)
    try:
        return ast.literal_eval(text) if text != "..." else Expression(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return Expression(text)


def find_keywords(code: Code, names: Names) -> Iterator[Note]:
    """Find keywords that a function no longer takes, and arguments that it needs today."""
    for call in code.calls:
        name = names.full_name(call.name)
        if name == "{}" or name == TRAINER or names.makes_trainer(call):
            continue
        processes = call.keyword("nprocs") if name.endswith("xla_multiprocessing.spawn") else None
        if processes and processes.type != "name" and source(processes) not in ("1", "None"):
            why = "It takes nprocs=1 or None today. launch has no number: it uses all devices."
            old = f"{call.name}(nprocs=...)"
            yield code.note(call.node, old, "torch_xla.launch(function)", why)
        given = {each.name for each in call.arguments}
        is_open = any(getattr(each.value, "value", "") == "..." for each in call.arguments)
        if not is_open and not given & {"*", "**"} and not code.is_guarded(call.node):
            by_position = sum(not each.name for each in call.arguments)
            for needed in missing_arguments(name, by_position, given):
                why = f"{version(name)}, which is installed here, needs this argument."
                yield code.note(call.node, f"{call.name}(...)", needed, why)
        for each in [call, *_nested(call)]:
            yield from _keywords(code, each, names)


def _nested(call: Call) -> Iterator[Call]:
    """Yield a call for `lr_scheduler_kwargs={...}` beside `lr_scheduler_cls=...`, as Darts has."""
    given = {each.name: each for each in call.arguments}
    for name, each in given.items():
        kind = given.get(name.removesuffix("_kwargs") + "_cls")
        if kind and each.value.type == "atom":
            inside = each.value.children[1]
            if inside.type == "dictorsetmaker":
                yield Call(source(kind.value), each.node, pairs_of(inside))


def _keywords(code: Code, call: Call, names: Names) -> Iterator[Note]:
    """Find the keywords that a function no longer takes."""
    name = names.full_name(call.name)
    function = name.rpartition(".")[2]
    for each in call.arguments:
        takes = accepts(name, each.name)
        if not each.name.isidentifier() or takes:
            continue
        keys = [f"*.{each.name}"]
        if not names.is_from_elsewhere(call.name):
            key = f"{function}.{each.name}"
            keys = [f"{key}={source(each.value)}", key, *keys]
        advice = next((KEYWORDS[key] for key in keys if key in KEYWORDS), None)
        if advice is None and takes is False and not code.is_guarded(call.node):
            why = f"{version(name)}, which is installed here, has no such argument."
            advice = ("", why)
        if advice:
            yield code.note(each.node, f"{function}({each.name}=...)", *advice)


def find_in_code(code: Code, names: Names) -> Iterator[Note]:
    """Find everything in a stretch of code that is outdated."""
    for find in _FINDERS:
        yield from find(code, names)


_FINDERS: tuple[Callable[[Code, Names], Iterator[Note]], ...] = (
    find_imports,
    find_uses,
    find_trainer_arguments,
    find_keywords,
    find_methods,
    find_results,
    find_hparams,
    find_idioms,
    find_device_strings,
    find_async,
    find_fourier,
    find_masks,
    find_strings,
)
