"""Trainer arguments in a source: translate them, and put the new ones in the place of the old."""

import ast
from collections.abc import Sequence
from typing import Any

from course_utils.old_code.notes import Edit, Expression, Finding, Note
from course_utils.old_code.parsed_code import Argument, Code, source
from course_utils.old_code.trainer_arguments import (
    Modern,
    known,
    listed,
    removed,
    translate,
    written,
)


def find_arguments(
    code: Code,
    arguments: Sequence[Argument],
    *,
    form: str = "{}={}",
    whole: bool = False,
) -> list[Finding]:
    """Return what became of the arguments of a Trainer; all edits are with the first of them.

    Args:
        code: where they are.
        arguments: all of them, in their order.
        form: of a new argument; a dictionary in braces has another one.
        whole: whether these are all the arguments of a Trainer, so that a name which no Trainer
            ever had is a mistake.
    """
    values: dict[str, Any] = {}
    places: dict[str, int] = {}
    notes: dict[str, Note] = {}
    for each in arguments:
        if each.name not in known() and not (whole and each.name.isidentifier()):
            continue
        places[each.name] = code.span(each.first)[0]
        outcomes = _outcomes(each.value)
        if len(outcomes) == 1:
            values[each.name] = value_of(each.value)
        elif note := _note_for_a_person(each, outcomes):
            notes[each.name] = note
    modern = translate(values, whole=whole and not notes)
    if modern.fit_kwargs:
        del modern.moved["resume_from_checkpoint"]  # it stays, so that it fails with an error
    notes |= modern.changes
    for old, why in modern.refused.items():
        notes[old] = Note(written(old, values[old]), "nothing that means the same", why)
    if not notes:
        return []
    edits = _edits(code, arguments, modern, form)
    first = min(places.values())
    found = [Finding(note, places.get(old, first)) for old, note in notes.items()]
    return [Finding(found[0].note, found[0].place, tuple(edits)), *found[1:]]


def value_of(node: Any) -> Any:
    """Return a literal as its value, and anything else as an expression."""
    text = source(node)
    try:
        is_short = len(text) <= 1000 and text != "..."
        return ast.literal_eval(text) if is_short else Expression(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return Expression(text)


def write(value: Any) -> str:
    """Return a value as source, strings in double quotes."""
    if isinstance(value, str):
        return f'"{value}"' if not set(value) & set('"\\\n') else repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(write, value))}]"
    return repr(value)


def _outcomes(node: Any) -> list[Any]:
    """Return the nodes of `a` and `b` in `a if test else b`, and of any other value itself."""
    inside = node.children[1] if node.type == "atom" and source(node)[0] == "(" else node
    if inside.type == "test" and len(inside.children) == 5:
        return [*_outcomes(inside.children[0]), *_outcomes(inside.children[4])]
    return [node]


def _note_for_a_person(argument: Argument, outcomes: list[Any]) -> Note | None:
    """Return what the outcomes of a test mean today, or None where all of them still hold."""
    name = argument.name
    why = "It depends on a test: write both cases yourself."
    meant, is_old = [], name in removed()
    for outcome in outcomes:
        modern = translate({name: value_of(outcome)}, whole=False)
        is_old = is_old or bool(modern.changes or modern.refused)
        meant.append(listed(modern.kwargs) or "nothing")
        if modern.refused:
            why += f" {modern.refused[name]}"
    if not is_old:
        return None
    return Note(written(name, Expression(source(argument.value))), " or ".join(meant), why)


def _edits(code: Code, arguments: Sequence[Argument], modern: Modern, form: str) -> list[Edit]:
    """Put new arguments in the place of old ones.

    What could not be translated stays, so that it still fails with a clear error.
    """
    written_already = modern.kwargs.keys() & modern.old.keys() - modern.moved.keys()
    given_callbacks = any(each.name == "callbacks" for each in arguments)
    edits = []
    last_kept = None
    for number, argument in enumerate(arguments):
        names = modern.moved.get(argument.name)
        if names is None or ("callbacks" in names and given_callbacks):
            last_kept = argument  # two lists of callbacks: a person joins them
            continue
        new = []
        for name in dict.fromkeys(names):
            if name in modern.kwargs and name not in written_already:
                new.append(form.format(name, write(modern.kwargs[name])))
                written_already.add(name)
        start, end = code.span(argument.first, argument.value)
        if new:
            last_kept = argument
        else:
            end = _end_with_comma(code, arguments, number)
        edits.append(Edit(start, end, ", ".join(new)))
    if last_kept and last_kept is not arguments[-1]:
        # The last ones are taken out with the comma before them, unless there is a comment.
        start, end = code.span(last_kept.value)[1], code.span(arguments[-1].value)[1]
        if "#" not in code.text[start - code.start : end - code.start]:
            edits = [edit for edit in edits if edit.start < start] + [Edit(start, end, "")]
    return edits


def _end_with_comma(code: Code, arguments: Sequence[Argument], number: int) -> int:
    """Return where an argument ends that is taken out with the comma and the blanks after it."""
    end = code.span(arguments[number].value)[1]
    comma = arguments[number].value.get_last_leaf().get_next_leaf()
    if comma == ",":
        end = code.span(comma)[1]
    if number + 1 < len(arguments):
        following = code.span(arguments[number + 1].first)[0]
        between = code.text[end - code.start : following - code.start]
        end += len(between.partition("#")[0])  # but not a comment
    return end
