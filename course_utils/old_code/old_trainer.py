"""Translate the arguments of a Lightning Trainer of 2020 to 2023 into today's.

What an argument meant was read in the sources of pytorch-lightning 0.7.6, 1.0.8, 1.5.10 and 1.9.5;
what today's Trainer takes is asked of the Lightning that is installed. `old_arguments` holds a rule
for each old name.
"""

import difflib
import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from course_utils.old_code.installed import TRAINER, parameters
from course_utils.old_code.old_arguments import RULES
from course_utils.old_code.old_devices import COUNTS, Refusal, named_a_device, same
from course_utils.old_code.values import Expression


class _Short(reprlib.Repr):
    """Cut long values short, and write an object without a text of its own as Type(...)."""

    def repr_instance(self, value: object, level: int) -> str:
        plain = type(value).__repr__ is object.__repr__
        return f"{type(value).__name__}(...)" if plain else super().repr_instance(value, level)


_SHORT = _Short()
_SHORT.maxstring = _SHORT.maxother = 80


@dataclass(frozen=True)
class Note:
    """What became of one old argument or call.

    Attributes:
        old: as it was written, such as "gpus=2".
        new: what to write today, or "" when nothing is needed any more.
        why: what the old one really meant, or why it is gone.
        line: where a snippet has it, counted from 1; 0 outside a snippet.
        cell: which cell of a notebook has it, such as "cell 3"; "" elsewhere.
    """

    old: str
    new: str
    why: str
    line: int = 0
    cell: str = ""

    def __str__(self) -> str:
        where = f"{self.cell}, line {self.line}: ".removeprefix(", ") if self.line else ""
        return f"{where}{self.old} -> {self.new or 'nothing'}. {self.why}"


class CannotTranslate(ValueError):
    """Old arguments that nothing today stands for: a line for each, how it was written and the
    reason.
    """


@dataclass
class Modern:
    """Today's form of old Trainer arguments. While it is being made, each rule replaces its own
    argument.

    Attributes:
        old: the arguments as they were.
        kwargs: for `Trainer(**kwargs)`, or for the `pl_trainer_kwargs` of Darts.
        fit_kwargs: for `trainer.fit(model, **fit_kwargs)`, where Lightning has moved them.
        changes: a note for each change, by old argument; "" has that of an accelerator which nobody
            named.
        refused: by old argument, the reason.
        moved: by old argument, the new ones that took its place.
    """

    old: Mapping
    kwargs: dict
    fit_kwargs: dict = field(default_factory=dict)
    changes: dict[str, Note] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    moved: dict[str, list[str]] = field(default_factory=dict)

    @property
    def notes(self) -> tuple[Note, ...]:
        """One for each change; empty when nothing was old."""
        return tuple(self.changes.values())

    def __repr__(self) -> str:
        lines = [f"Trainer({_listed(self.kwargs)})"]
        if self.fit_kwargs:
            lines.append(f"trainer.fit(model, {_listed(self.fit_kwargs)})")
        return "\n".join(lines + [f"  {note}" for note in self.notes])

    def replace(self, name: str, new: dict, why: str) -> None:
        """Put `new` in the place of an old argument; a callback in it joins the callbacks."""
        others = {key: value for key, value in self.kwargs.items() if key != name}
        for key, value in new.items():
            if key != "callbacks" and key in others and not same(others[key], value):
                raise Refusal(
                    f"Another argument asks for {written(key, others[key])}. Keep one of the two."
                )
        text = _listed(new)
        if name == "resume_from_checkpoint" and self.fit_kwargs:
            text = f"trainer.fit(model, {_listed(self.fit_kwargs)})"
        if "callbacks" in new:
            callback = new["callbacks"]
            if not (isinstance(callback, Expression) or hasattr(callback, "on_train_start")):
                raise Refusal("This is no callback of Lightning.")
            text = written("callbacks", [callback])
            new = {**new, "callbacks": [*_as_list(others.get("callbacks")), callback]}
        self.kwargs = {**others, **new}
        self.changes[name], self.moved[name] = (
            Note(written(name, self.old[name]), text, why),
            [*new],
        )


def modernize(kwargs: Mapping) -> Modern:
    """Translate old Trainer arguments, or the `pl_trainer_kwargs` of Darts, into today's.

    Arguments that today's Trainer takes pass untouched, unless their value is an old one
    (`accelerator="ddp"`). An old Trainer that named no device used the CPU, and so does its
    translation when a device argument is old.

    Args:
        kwargs: the arguments by name; it is not changed.

    Raises:
        CannotTranslate: nothing today means the same, or no Lightning ever took it. It names all
            such arguments.
        ModuleNotFoundError: no Lightning is installed.
    """
    if not isinstance(kwargs, Mapping):
        raise CannotTranslate(
            f"{_SHORT.repr(kwargs)}: Trainer arguments are a dict, such as {{'gpus': 2}}."
        )
    modern = translate(kwargs)
    if modern.refused:
        old = {name: written(name, value) for name, value in kwargs.items()}
        raise CannotTranslate(
            "\n".join(f"{old.get(name, name)}: {why}" for name, why in modern.refused.items())
        )
    return modern


def translate(kwargs: Mapping, *, whole: bool = True) -> Modern:
    """Return the translation as far as it goes, with the arguments that have none in `refused`.

    Values may be `Expression`. `whole` says that these are all the arguments of a Trainer; a
    dictionary can get others.
    """
    # here, so that reading rules needs no Lightning; a missing one is an error
    import_module("course_utils.lightning")
    modern = Modern(kwargs, dict(kwargs))
    for name in [name for name in kwargs if name not in known()]:
        close = difflib.get_close_matches(name, sorted(known()), 1) if isinstance(name, str) else []
        hint = f" Did you mean {close[0]!r}?" if close else ""
        modern.refused[name] = (
            f"No Lightning from 0.7 to the one that is installed has this argument.{hint}"
        )
        del modern.kwargs[name]
    for name, rule in RULES.items():
        try:
            if name in modern.kwargs and (change := rule(modern, name, modern.kwargs[name])):
                modern.replace(name, *change)
        except Refusal as refusal:
            modern.refused[name] = str(refusal)
            del modern.kwargs[name]
    if named_a_device(kwargs, whole) and "accelerator" not in modern.kwargs and not modern.refused:
        why = "An old Trainer that named no device used the CPU; today's takes the best one. Omit it if you want that."
        modern.kwargs["accelerator"] = "cpu"
        # It stands where a count of devices stood, if there was one.
        modern.moved[min(modern.moved, key=lambda old: old not in COUNTS)].append("accelerator")
        modern.changes[""] = Note("no accelerator", "accelerator='cpu'", why)
    return modern


@cache
def known() -> frozenset[str]:
    """Return the arguments that a Trainer takes or once took."""
    return frozenset(RULES) | {*(parameters(TRAINER) or ())}


@cache
def removed() -> frozenset[str]:
    """Return the old arguments that today's Trainer does not take."""
    return known() - {*(parameters(TRAINER) or ())}


def written(name: object, value: object) -> str:
    """Return an argument as one writes it, a long value cut short."""
    return f"{name if isinstance(name, str) else _SHORT.repr(name)}={_SHORT.repr(value)}"


def _listed(arguments: dict) -> str:
    return ", ".join(written(name, value) for name, value in arguments.items())


def _as_list(callbacks: Any) -> list:
    if callbacks is None:
        return []
    if isinstance(callbacks, Expression):  # a list that is known only when the program runs
        return [
            Expression(
                f"*({callbacks})"
                if re.search(r"\b(or|and|not)\b", callbacks.text)
                else f"*{callbacks}"
            )
        ]
    return list(callbacks) if isinstance(callbacks, list | tuple) else [callbacks]
