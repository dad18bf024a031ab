"""Find old Trainer arguments in calls and dictionaries, and put new ones in their place."""

import ast
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from course_tools.old_code.names_in_code import Names
from course_tools.old_code.old_names import TRAINER
from course_tools.old_code.parsed_code import Argument, Code, Edit, Outdated, pairs_of, source
from course_tools.old_code.trainer_arguments import (
    Expression,
    Modern,
    known,
    removed,
    translate,
)


def find_trainer_arguments(code: Code, names: Names) -> Iterator[Outdated]:
    """Find old arguments of a Trainer, wherever they are written."""
    for call in code.calls:
        name = names.full(call.name)
        owner, _, method = name.rpartition(".")
        is_update = method == "update" and names.holds_arguments(owner)
        is_default = method == "set_defaults" and names.reads_command_line
        if is_update or is_default or names.makes_trainer(call):
            yield from _translated(code, call.arguments)
    for node in code.nodes:
        pairs = pairs_of(node)
        keys = {each.name for each in pairs}
        if keys & {*removed(), "accelerator"} and names.is_for_trainer(node.parent, keys):
            yield from _translated(code, pairs, form='"{}": {}')
        elif node.type == "expr_stmt" and len(node.children) == 3 and node.children[1] == "=":
            yield from _item(code, node, names)


def _item(code: Code, statement: Any, names: Names) -> Iterator[Outdated]:
    """Find `kwargs["gpus"] = 2` and `args.trainer.gpus = 2`, which a person has to change."""
    target, _, value = statement.children
    item = re.fullmatch(r"(.+?)(?:\[['\"](\w+)['\"]\]|\.(\w+))", source(target), re.DOTALL)
    if item is None or names.full(source(target)).startswith(f"{TRAINER}."):
        return
    owner, name = item[1], item[2] or item[3]
    is_for_trainer = names.holds_arguments(owner)
    if item[3]:
        is_parsed = names.reads_command_line and owner in ("args", "hparams")
        is_for_trainer = is_parsed or (is_for_trainer and names.is_lightning)
    if name in removed() and is_for_trainer:
        for each in _translated(code, [Argument(name, target, value)])[:1]:
            yield replace(each, edits=())


def _translated(code: Code, arguments: Sequence[Argument], form: str = "{}={}") -> list[Outdated]:
    """Return what became of the arguments of a Trainer; all edits are with the first of them.

    Args:
        code: where they are.
        arguments: all of them, in their order.
        form: of a new argument; a dictionary in braces has another one.
    """
    values: dict[str, Any] = {}
    places: dict[str, int] = {}
    for each in arguments:
        if each.name in known():
            values[each.name] = _value_of(each.value)
            places[each.name] = code.span(each.first)[0]
    modern = translate(values)
    notes = {**modern.changes, **modern.refused}
    for each in arguments:
        is_for_fit = modern.fit_kwargs and each.name == "resume_from_checkpoint"
        if is_for_fit or " if " in source(each.value):
            modern.moved.pop(each.name, None)  # it stays, for a person to change
    found = [Outdated(note, places[old]) for old, note in notes.items()]
    if found:
        found[0] = replace(found[0], edits=tuple(_edits(code, arguments, modern, form)))
    return found


def _value_of(node: Any) -> Any:
    """Return a literal as its value, and anything else as an expression."""
    text = source(node)
    try:
        return ast.literal_eval(text) if text != "..." else Expression(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return Expression(text)


def _written(form: str, name: str, value: Any) -> str:
    """Return a new argument as source, with a text in double quotes."""
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
    return form.format(name, text)


def _edits(code: Code, arguments: Sequence[Argument], modern: Modern, form: str) -> Iterator[Edit]:
    """Put new arguments in the place of old ones.

    What could not be translated stays, so that it still fails with a clear error.
    """
    spans = [code.span(each.first, each.value) for each in arguments]
    written_already = modern.kwargs.keys() & modern.old.keys() - modern.moved.keys()
    is_any_kept = False
    for number, argument in enumerate(arguments):
        start, end = spans[number]
        names = modern.moved.get(argument.name)
        new = [name for name in names or () if name not in written_already]
        written_already |= set(new)
        before = code.text[spans[number - 1][1] - code.start : start - code.start] if number else ""
        if names is None:
            is_any_kept = True
        elif new:
            parts = [_written(form, name, modern.kwargs[name]) for name in new]
            yield (start, end, ", ".join(parts))
            is_any_kept = True
        elif is_any_kept and "#" not in before:  # with the comma before it
            yield (start - len(before), end, "")
        else:  # with the comma behind it
            comma = re.compile(r"\s*,\s*").match(code.text, end - code.start)
            yield (start, comma.end() + code.start if comma else end, "")
