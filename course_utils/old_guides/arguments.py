"""Trainer arguments in a source: translate them as they are written, and put the new ones in their places."""

from dataclasses import replace
from typing import Any

from course_utils.old_guides.installed import TRAINER, parameters
from course_utils.old_guides.old_arguments import RULES
from course_utils.old_guides.old_devices import COUNTS
from course_utils.old_guides.old_trainer import Modern, Note, translate, written
from course_utils.old_guides.syntax import Argument, Code, Edit, source
from course_utils.old_guides.values import Choice, value_of, write

_NOTHING = "nothing that means the same"
_RESUME = "resume_from_checkpoint"  # which `fit` takes today, and None too, so that a choice can stay one


Finding = tuple[Note, int, list[Edit]]  # what, its place in the part, and how to change it


def translate_arguments(
    code: Code, arguments: list[Argument], form: str, whole: bool = False, has_fit: bool = False
) -> tuple[list[Finding], Modern]:
    """Return what became of the arguments of a Trainer, all edits with the first of them, and the translation.

    Args:
        code: where they are.
        arguments: all of them, named or not, in their order.
        form: of a new argument; a dictionary in braces has another one.
        whole: whether these are all the arguments of a Trainer, so that one which no Trainer ever had is a mistake.
        has_fit: whether there is a `fit` to take what has moved there; else that stays, so that it still fails aloud.
    """
    known = {*RULES, *(parameters(TRAINER) or ())}
    named = {each.name: each for each in arguments if each.name in known or (whole and each.name.isidentifier())}
    values = {name: value_of(each.value) for name, each in named.items()}
    modern = _translated(values, whole)
    if not has_fit and modern.fit_kwargs:
        modern.moved.pop(_RESUME, None)
    notes = dict(modern.changes)
    notes |= {old: Note(written(old, values[old]), _NOTHING, why) for old, why in modern.refused.items()}
    places = {name: code.span(each.first)[0] for name, each in named.items()}
    first = min(places.values(), default=0)
    found: list[Finding] = [(note, places.get(old, first), []) for old, note in notes.items()]
    if found:
        found[0][2].extend(_edits(code, arguments, modern, form) + _more_callbacks(code, arguments, modern))
    return found, modern


def _translated(values: dict[str, Any], whole: bool) -> Modern:
    """Translate values, and those that depend on a test once for each of its outcomes."""
    choices = {name: each for name, each in values.items() if isinstance(each, Choice) and name != _RESUME}
    if not choices:
        return translate(values, whole=whole)
    choice = next(iter(choices.values()))
    depends = [name for name, each in choices.items() if each.test == choice.test]
    one = _translated({**values, **{name: values[name].one for name in depends}}, whole)
    other = _translated({**values, **{name: values[name].other for name in depends}}, whole)
    if refused := {**one.refused, **other.refused}:
        modern = _translated({name: value for name, value in values.items() if name not in refused}, whole)
        return replace(modern, old=values, refused={**modern.refused, **refused})
    return _joined(choice, values, one, other)


def _joined(choice: Choice, values: dict[str, Any], one: Modern, other: Modern) -> Modern:
    """Return one translation out of two, whose new arguments depend on a test where they differ."""
    modern = replace(one, old=values, kwargs={}, changes={}, moved={})
    for key in {**one.kwargs, **other.kwargs}:
        yes, no = (each.kwargs.get(key, parameters(TRAINER)[key].default) for each in (one, other))
        modern.kwargs[key] = yes if write(yes) == write(no) else Choice(choice.test, yes, no)
    for old in {**one.moved, **other.moved}:
        modern.moved[old] = [key for each in (one, other) for key in each.moved.get(old, [old] * (old in each.kwargs))]
    for old in values:
        notes = [each.changes[old] for each in (one, other) if old in each.changes]
        if not notes:
            continue
        keys = dict.fromkeys([*modern.moved[old], *modern.moved.get("", []) * (old in COUNTS)])
        new = ", ".join(f"{key}={write(modern.kwargs[key])}" for key in keys if key in modern.kwargs)
        whys = dict.fromkeys(note.why for note in notes)
        modern.changes[old] = Note(written(old, values[old]), new or notes[0].new, " Otherwise: ".join(whys))
    return modern


def _edits(code: Code, arguments: list[Argument], modern: Modern, form: str) -> list[Edit]:
    """Put new arguments in the place of old ones. What could not be translated stays, so that it still fails aloud."""
    if modern.moved.keys() == {""}:  # the CPU is named where nothing else has to be changed
        end = code.span(arguments[-1].value)[1]
        return [(end, end, ", " + form.format("accelerator", '"cpu"'))]
    kept = {name for name in modern.kwargs if name in modern.old and name not in modern.moved}
    changed = [number for number, each in enumerate(arguments) if each.name in modern.moved.keys() - {""}]
    new: dict[int, str] = {}  # by the number of an argument: what comes in its place, "" for nothing
    for number in changed:
        keys = [*modern.moved[arguments[number].name], *modern.moved.get("", []) * (number == changed[-1])]
        fresh = [key for key in dict.fromkeys(keys) if key in modern.kwargs and key not in kept]
        kept |= {*fresh}
        new[number] = ", ".join(form.format(key, write(modern.kwargs[key])) for key in fresh)
    return [edit for number in new for edit in _edit(code, arguments, new, number)]


def _edit(code: Code, arguments: list[Argument], new: dict[int, str], number: int) -> list[Edit]:
    start, end = code.span(arguments[number].first, arguments[number].value)
    if new[number]:
        return [(start, end, new[number])]
    stay = [index for index in range(len(arguments)) if new.get(index, "stays")]
    if stay and stay[-1] < number:  # the last ones go with the comma before them
        whole = code.span(arguments[stay[-1]].value)[1], code.span(arguments[-1].value)[1], ""
        return [whole] * (number == stay[-1] + 1)
    if number + 1 == len(arguments):
        comma = arguments[number].value.get_last_leaf().get_next_leaf()
        return [(start, code.span(comma)[1] if comma and comma.value == "," else end, "")]
    following = code.span(arguments[number + 1].first)[0]  # delete it with the comma after it, but no comment
    between = code.between(end, following)
    comment = between[between.index(",") + 1 :].lstrip(" ") if "#" in between else ""
    return [(start, following - len(comment), "")]


def _more_callbacks(code: Code, arguments: list[Argument], modern: Modern) -> list[Edit]:
    """Add to the callbacks that are given those that replace arguments."""
    node: Any = next((each.value for each in arguments if each.name == "callbacks"), None)
    callbacks: Any = modern.kwargs.get("callbacks")
    if node is None or not any("callbacks" in new for new in modern.moved.values()):
        return []
    inside = {each.type for each in getattr(node.children[1], "children", ())} if node.type == "atom" else {"comp_for"}
    if not source(node).startswith("[") or inside & {"comp_for", "sync_comp_for"} or isinstance(callbacks, Choice):
        return [(*code.span(node), write(callbacks))]
    text = ", ".join(write(each) for each in callbacks if getattr(each, "text", "")[:1] != "*")
    before = node.children[-1].get_previous_leaf()
    at = code.span(before)[1]
    comma = {"[": "", ",": " "}.get(before.value, ", ")
    return [(at, at, comma + text)]
