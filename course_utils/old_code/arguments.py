"""Trainer arguments in a source: translate them as they are written, and put the new ones in their
places.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from course_utils.old_code.installed import TRAINER, parameters
from course_utils.old_code.old_trainer import Modern, Note, known, translate, written
from course_utils.old_code.rewriting import fit_edits
from course_utils.old_code.syntax import Argument, Call, Code, Edit, source
from course_utils.old_code.values import Choice, literal, value_of, write

_NOTHING = "nothing that means the same"
# which `fit` takes today, and None too, so that a choice can stay one
_RESUME = "resume_from_checkpoint"

Finding = tuple[Note, int, list[Edit]]  # what, its place in the part, and how to change it


def find_arguments(
    code: Code,
    arguments: Sequence[Argument],
    fit: Call | None = None,
    form: str = "{}={}",
    whole: bool = False,
) -> list[Finding]:
    """Return what became of the arguments of a Trainer, all edits with the first of them.

    Args:
        code: where they are.
        arguments: all of them, named or not, in their order.
        fit: the call that takes what has moved there; without one that stays, so that it still
            fails aloud.
        form: of a new argument; a dictionary in braces has another one.
        whole: whether these are all the arguments of a Trainer, so that one which no Trainer ever
            had is a mistake.
    """
    named = {
        each.name: each
        for each in arguments
        if each.name in known() or (whole and each.name.isidentifier())
    }
    values = {name: value_of(each.value) for name, each in named.items()}
    if _RESUME in named:
        values[_RESUME] = literal(source(named[_RESUME].value))
    modern = _translated(values, whole)
    if fit is None and modern.fit_kwargs:
        del modern.moved[_RESUME]
    notes = dict(modern.changes)
    notes |= {
        old: Note(written(old, values[old]), _NOTHING, why) for old, why in modern.refused.items()
    }
    places = {name: code.span(each.first)[0] for name, each in named.items()}
    first = min(places.values(), default=0)
    found: list[Finding] = [(note, places.get(old, first), []) for old, note in notes.items()]
    if found:
        edits = _edits(code, arguments, modern, form) + _more_callbacks(code, arguments, modern)
        edits += fit_edits(code, fit, modern.fit_kwargs) if fit and modern.fit_kwargs else []
        found[0][2].extend(edits)
    return found


def _translated(values: dict[str, Any], whole: bool) -> Modern:
    """Translate values, and those that depend on a test once for each of its outcomes."""
    choice = next((each for each in values.values() if isinstance(each, Choice)), None)
    if choice is None:
        return translate(values, whole=whole)
    depends = {
        name: each
        for name, each in values.items()
        if isinstance(each, Choice) and each.test == choice.test
    }
    one = _translated({**values, **{name: each.one for name, each in depends.items()}}, whole)
    other = _translated({**values, **{name: each.other for name, each in depends.items()}}, whole)
    if refused := {**one.refused, **other.refused}:
        modern = _translated(
            {name: value for name, value in values.items() if name not in refused}, whole
        )
        return replace(modern, old=values, refused={**modern.refused, **refused})
    return _joined(choice, values, one, other)


def _joined(choice: Choice, values: dict[str, Any], one: Modern, other: Modern) -> Modern:
    """Return one translation out of two, whose new arguments depend on a test where they differ."""
    modern = replace(one, old=values, kwargs={}, changes={}, moved={})
    for key in {**one.kwargs, **other.kwargs}:
        yes, no = (each.kwargs.get(key, parameters(TRAINER)[key].default) for each in (one, other))
        modern.kwargs[key] = yes if write(yes) == write(no) else Choice(choice.test, yes, no)
    for old in {**one.moved, **other.moved}:
        modern.moved[old] = [
            key
            for each in (one, other)
            for key in each.moved.get(old, [old] * (old in each.kwargs))
        ]
    for old in values:
        notes = [each.changes[old] for each in (one, other) if old in each.changes]
        if not notes:
            continue
        keys = [key for key in dict.fromkeys(modern.moved[old]) if key in modern.kwargs]
        new = ", ".join(f"{key}={write(modern.kwargs[key])}" for key in keys)
        whys = dict.fromkeys(note.why for note in notes)
        modern.changes[old] = Note(
            written(old, values[old]), new or notes[0].new, " Otherwise: ".join(whys)
        )
    return modern


def _edits(code: Code, arguments: Sequence[Argument], modern: Modern, form: str) -> list[Edit]:
    """Put new arguments in the place of old ones. What could not be translated stays, so that it
    still fails aloud.
    """
    kept = {name for name in modern.kwargs if name in modern.old and name not in modern.moved}
    # by the number of an argument: what comes in its place, "" for nothing
    new: dict[int, str] = {}
    for number, argument in enumerate(arguments):
        if argument.name in modern.moved:
            keys = dict.fromkeys(modern.moved[argument.name])
            fresh = [key for key in keys if key in modern.kwargs and key not in kept]
            kept |= {*fresh}
            new[number] = ", ".join(form.format(key, write(modern.kwargs[key])) for key in fresh)
    edits = []
    for number, text in new.items():
        start, end = code.span(arguments[number].first, arguments[number].value)
        comma = arguments[number].value.get_last_leaf().get_next_leaf()
        if not text and comma == ",":  # it goes with the comma after it, but without a comment
            end = code.span(comma)[1]
            following = (
                code.span(arguments[number + 1].first)[0] if number + 1 < len(arguments) else end
            )
            end += len(code.between(end, following).partition("#")[0])
        edits.append((start, end, text))
    stay = [number for number in range(len(arguments)) if new.get(number, "stays")]
    # the last ones go with the comma before them, unless a comment stays
    if stay and stay[-1] + 1 < len(arguments):
        gone = code.span(arguments[stay[-1]].value)[1], code.span(arguments[-1].value)[1]
        edits += [(*gone, "")] if "#" not in code.between(*gone) else []
    return edits


def _more_callbacks(code: Code, arguments: Sequence[Argument], modern: Modern) -> list[Edit]:
    """Add to the callbacks that are given those that were arguments of their own."""
    node: Any = next((each.value for each in arguments if each.name == "callbacks"), None)
    callbacks: Any = modern.kwargs.get("callbacks")
    if node is None or not any("callbacks" in new for new in modern.moved.values()):
        return []
    last = getattr(node.children[1], "children", [node])[-1] if node.type == "atom" else node
    is_list = (
        node.type == "atom"
        and source(node)[0] == "["
        and last.type not in ("comp_for", "sync_comp_for")
    )
    if not is_list or isinstance(callbacks, Choice):
        return [(*code.span(node), write(callbacks))]
    text = ", ".join(write(each) for each in callbacks if getattr(each, "text", "")[:1] != "*")
    before = node.children[-1].get_previous_leaf()
    at = code.span(before)[1]
    return [(at, at, {"[": "", ",": " "}.get(before.value, ", ") + text)]
