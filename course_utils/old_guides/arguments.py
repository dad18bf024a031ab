"""Trainer arguments in a source: translate them as they are written, and put the new ones in their places."""

from dataclasses import replace
from typing import Any

from course_utils.old_guides.old_arguments import RULES
from course_utils.old_guides.old_devices import COUNTS
from course_utils.old_guides.old_trainer import Draft, Note, translate, written
from course_utils.old_guides.syntax import Argument, Code
from course_utils.old_guides.values import Choice, value_of, write

Edit = tuple[int, int, str]  # from, to, and what comes in between
_DEFAULTS = {"accelerator": "auto", "devices": "auto", "strategy": "auto"}


def translate_arguments(
    code: Code, arguments: list[Argument], form: str = "{}={}", whole: bool = True
) -> tuple[list[tuple[Note, int]], list[Edit], Draft]:
    """Return what became of the arguments of a Trainer, each with its place, the edits, and the translation.

    Args:
        code: where they are.
        arguments: all of them, named or not, in their order.
        form: of a new argument; a dictionary in braces has another one.
        whole: whether these are all the arguments of a Trainer, so that one which no Trainer ever had is a mistake.
    """
    named = [each for each in arguments if each.name not in ("", "*", "**") and (each.name in RULES or whole)]
    values = {each.name: value_of(each.value, code.source(each.value)) for each in named}
    draft = _translated(values)
    places = {written(name, value): _place(code, arguments, name) for name, value in values.items()}
    first = min(places.values(), default=0)
    notes = [(note, places.get(note.old, first)) for note in draft.notes]
    notes += [(Note(old, "nothing that means the same", why), places.get(old, first)) for old, why in draft.refused]
    edits = _edits(code, arguments, values, draft, form) + _more_callbacks(code, arguments, draft)
    return notes, edits, draft


def _place(code: Code, arguments: list[Argument], name: str) -> int:
    return next(code.span(each.node)[0] for each in arguments if each.name == name)


def _translated(values: dict[str, Any]) -> Draft:
    """Translate values, and those that depend on a test once for each of its outcomes."""
    choice = next((each for each in values.values() if isinstance(each, Choice)), None)
    if choice is None:
        return translate(values)
    one, other = (
        _translated({name: _chosen(value, choice.test, yes) for name, value in values.items()}) for yes in (True, False)
    )
    if refused := _refusals(values, one, other):
        draft = _translated(
            {name: value for name, value in values.items() if name not in map(_named, (old for old, _ in refused))}
        )
        return replace(draft, refused=draft.refused + refused)
    draft = replace(one, new={}, notes=[], refused=[])
    for key in [*one.new, *(key for key in other.new if key not in one.new)]:
        yes, no = (each.new.get(key, _DEFAULTS.get(key)) for each in (one, other))
        draft.new[key] = yes if write(yes) == write(no) else Choice(choice.test, yes, no)
    draft.moved = {
        name: [*one.moved.get(name, [name] * (name in one.new)), *other.moved.get(name, [])]
        for name in {**one.moved, **other.moved}
    }
    draft.notes = [_note(name, values, draft, (one, other)) for name in draft.moved if name in values]
    return draft


def _chosen(value: Any, test: str, yes: bool) -> Any:
    return (value.one if yes else value.other) if isinstance(value, Choice) and value.test == test else value


def _named(old: str) -> str:
    return old.partition("=")[0]


def _refusals(values: dict[str, Any], *drafts: Draft) -> list[tuple[str, str]]:
    reasons = {_named(old): (old, why) for draft in drafts for old, why in draft.refused}
    whole = {name: written(name, values[name]) for name in reasons}
    return [(whole[name], f"{old}: {why}" if old != whole[name] else why) for name, (old, why) in reasons.items()]


def _note(name: str, values: dict[str, Any], draft: Draft, drafts: tuple[Draft, Draft]) -> Note:
    whys = [note.why for each in drafts for note in each.notes if _named(note.old) == name]
    new = ", ".join(
        f"{key}={write(draft.new[key])}"
        for key in dict.fromkeys([*draft.moved[name], *draft.moved.get("", []) * (name in COUNTS)])
        if key in draft.new
    )
    return Note(written(name, values[name]), new, " Otherwise: ".join(dict.fromkeys(whys)))


def _edits(code: Code, arguments: list[Argument], values: dict[str, Any], draft: Draft, form: str) -> list[Edit]:
    """Put new arguments in the place of old ones. What could not be translated stays, so that it still fails aloud."""
    new: list[str | None] = []  # for each argument: its new text, "" to delete it, None to leave it
    done = {name for name in values if name in draft.new and name not in draft.moved}
    refused = {_named(old) for old, _ in draft.refused}
    last = max((number for number, each in enumerate(arguments) if each.name in draft.moved), default=0)
    for number, each in enumerate(arguments):
        keys = draft.moved.get(each.name) if each.name in values and each.name not in refused else None
        keys = [*(keys or [])] + draft.moved.get("", []) * (keys is not None and number == last)
        fresh = [key for key in dict.fromkeys(keys) if key not in done and key in draft.new]
        done |= {*fresh}
        text = ", ".join(form.format(key, write(draft.new[key])) for key in fresh)
        new.append(text if each.name in draft.moved else None)
    if "" in draft.moved and not set(draft.moved) - {""}:  # the CPU is named where nothing else has to be changed
        end = code.span(arguments[-1].node)[1]
        return [(end, end, ", " + form.format("accelerator", '"cpu"'))]
    return [
        edit
        for number, text in enumerate(new)
        if text is not None
        for edit in _edit(code, arguments, new, number, text)
    ]


def _more_callbacks(code: Code, arguments: list[Argument], draft: Draft) -> list[Edit]:
    """Add to the callbacks that are given those that replace arguments."""
    node: Any = next((each.value for each in arguments if each.name == "callbacks"), None)
    more = draft.new.get("callbacks") if node is not None else None
    more = [each for each in more if getattr(each, "text", "") != code.source(node)] if isinstance(more, list) else []
    if not more:
        return []
    text = ", ".join(map(write, more))
    start, end = code.span(node)
    if code.source(node) == "None":
        return [(start, end, f"[{text}]")]
    if code.text[start - code.offset] != "[":
        return [(start, start, "[*"), (end, end, f", {text}]")]
    before = node.children[-1].get_previous_leaf()
    at = code.span(before)[1]
    return [(at, at, f"{'' if before.value in '[,' else ','}{' ' * (before.value != '[')}{text}")]


def _edit(code: Code, arguments: list[Argument], new: list[str | None], number: int, text: str) -> list[Edit]:
    start, end = code.span(arguments[number].node)
    if text:
        return [(start, end, text)]
    kept = max((index for index in range(number) if new[index] != ""), default=None)
    if kept is not None and not any(each != "" for each in new[number:]):  # the last ones go with the comma before them
        return [(code.span(arguments[kept].node)[1], code.span(arguments[-1].node)[1], "")] * (number == kept + 1)
    if number + 1 < len(arguments):  # delete it with the comma after it, and its line if nothing else is there
        following = code.span(arguments[number + 1].node)[0]
        between = code.text[end - code.offset : following - code.offset]
        if "#" in between:
            after = between[between.index(",") + 1 :]
            return [(start, following - len(after.lstrip(" ")), "")]
        return [(start, following, "")]
    return [(start, end, "")]
