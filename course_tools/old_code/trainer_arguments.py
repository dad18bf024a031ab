"""Translate the arguments of a Lightning Trainer of 2020 to 2023 into today's.

`trainer_arguments.json` has the rows of each old argument. What an argument meant was read in the
sources of pytorch-lightning 0.7.6, 1.0.8, 1.5.10 and 1.9.5; what today's Trainer takes is asked of
the Lightning that is installed.
"""

import json
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from course_tools.old_code.installed import parameters_of_trainer
from course_tools.old_code.note import Note


class CannotTranslate(ValueError):
    """Old arguments that nothing today stands for: a line for each, with the reason."""


@dataclass(frozen=True)
class Expression:
    """A value that is known only when the program runs, as its source."""

    text: str

    def __repr__(self) -> str:
        return self.text


@dataclass
class Modern:
    """Today's form of old Trainer arguments.

    Attributes:
        old: the arguments as they were.
        kwargs: for `Trainer(**kwargs)`, or for the `pl_trainer_kwargs` of Darts.
        fit_kwargs: for `trainer.fit(model, **fit_kwargs)`, where Lightning has moved them.
        changes: a note for each change, by old argument.
        refused: a note for each old argument that has no translation.
    """

    old: Mapping
    kwargs: dict
    fit_kwargs: dict = field(default_factory=dict)
    changes: dict[str, Note] = field(default_factory=dict)
    refused: dict[str, Note] = field(default_factory=dict)

    def __repr__(self) -> str:
        lines = [f"Trainer({as_arguments(self.kwargs)})"]
        if self.fit_kwargs:
            lines.append(f"trainer.fit(model, {as_arguments(self.fit_kwargs)})")
        return "\n".join(lines + [f"  {note}" for note in self.changes.values()])

    def refuse(self, name: str, why: str) -> None:
        """Leave out an argument that has no translation."""
        del self.kwargs[name]
        old = as_arguments({name: self.old[name]})
        self.refused[name] = Note(old, "nothing that means the same", why)

    def replace(self, name: str, new: dict, why: str) -> None:
        """Put `new` in the place of an old argument, or refuse it where another one disagrees."""
        others = {key: value for key, value in self.kwargs.items() if key != name}
        if new.get("accelerator") == "gpu" and same(others.get("accelerator"), "cuda"):
            new = {**new, "accelerator": "cuda"}  # a GPU under its own name
        text = as_arguments(new)
        if "ckpt_path" in new:
            self.fit_kwargs, new = new, {}
            text = f"trainer.fit(model, {text})"
        elif "callbacks" in new and isinstance(others.get("callbacks"), list):
            new = {"callbacks": others.pop("callbacks") + new["callbacks"]}
        for key, value in new.items():
            if key in others and not same(others[key], value):
                asked = as_arguments({key: others[key]})
                return self.refuse(name, f"Another argument asks for {asked}: join the two.")
        self.kwargs = {**others, **new}
        self.changes[name] = Note(as_arguments({name: self.old[name]}), text, why)


def modernize(kwargs: Mapping) -> Modern:
    """Translate old Trainer arguments, or the `pl_trainer_kwargs` of Darts, into today's.

    Arguments that today's Trainer takes stay as they are, unless their value is an old one
    (`accelerator="ddp"`).

    Args:
        kwargs: the arguments by name; it is not changed.

    Raises:
        CannotTranslate: nothing today means the same, or no Lightning ever took it. It names all
            such arguments.

    Example:
        >>> modernize({"tpu_cores": 8, "max_nb_epochs": 3}).kwargs
        {'accelerator': 'tpu', 'devices': 8, 'max_epochs': 3}
        >>> modernize({"gpus": "2"})
        Traceback (most recent call last):
        ...
        course_tools.old_code.trainer_arguments.CannotTranslate: gpus='2': Up to Lightning 1.4 '2'
        meant GPU number 2, from 1.5 on that many GPUs; '0,1' was a list of them. Write
        accelerator='gpu' with devices=2, devices=[2] or devices=[0, 1].
    """
    modern = translate(kwargs)
    if modern.refused:
        lines = [f"{note.old}: {note.why}" for note in modern.refused.values()]
        raise CannotTranslate("\n".join(lines))
    return modern


def translate(kwargs: Mapping) -> Modern:
    """Return the translation as far as it goes, with the arguments that have none in `refused`.

    Args:
        kwargs: the arguments by name. A value may be an `Expression`.
    """
    modern = Modern(kwargs, dict(kwargs))
    for name in kwargs:
        if parameters_of_trainer() and name not in known_arguments():
            why = "No Lightning from 0.7 to the one that is installed has this argument."
            modern.refuse(name, why)
    for name in ROWS:
        if name in modern.kwargs:
            _translate_one(modern, name)
    return modern


def _translate_one(modern: Modern, name: str) -> None:
    """Apply the first row that fits the value; without one the value is good today."""
    value = modern.kwargs[name]
    for kind, new, why in _rows_for(modern, name):
        if not _fits(kind, value):
            continue
        why = why.replace("VALUE", _SHORT.repr(value))
        if new is None:
            modern.refuse(name, why)
            return
        filled = {key: _fill(form, value) for key, form in new.items()}
        if filled.keys() != {name} or not same(filled[name], value):
            modern.replace(name, filled, why)
        return


def _rows_for(modern: Modern, name: str) -> list:
    accelerator = modern.kwargs.get("accelerator")
    if name == "precision" and same(accelerator, "tpu"):
        return ROWS["precision on a TPU"]
    is_backend = isinstance(accelerator, Expression) and "gpus" in modern.old
    if name == "accelerator" and is_backend:  # up to 1.4 it was a distributed_backend
        return ROWS["distributed_backend"]
    return ROWS[name]


_KINDS: dict[str, type | tuple[type, ...]] = {
    "any": object,
    "expression": Expression,
    "list": (list, tuple),
    "table": (dict, list),
    "text": str,
}


def _fits(kind: str | list, value: Any) -> bool:
    """Say whether a value is one of a list of values, or of a kind."""
    if kind == "count":
        return type(value) is int and value > 0
    if isinstance(kind, str):
        return isinstance(value, _KINDS[kind])
    return same(value, *kind)


def _fill(form: Any, value: Any) -> Any:
    """Return the new value of a row."""
    if form == "VALUE":
        return value
    return [value] if form == ["VALUE"] else form


def same(value: Any, *others: Any) -> bool:
    """Say whether a value equals one of others of its type (1 is not True)."""
    return any(type(value) is type(other) and value == other for other in others)


@cache
def known_arguments() -> frozenset[str]:
    """Return the arguments that a Trainer takes or once took."""
    return removed_arguments() | parameters_of_trainer() | STILL_THERE


@cache
def removed_arguments() -> frozenset[str]:
    """Return the old arguments that today's Trainer does not take."""
    once = {name for name in ROWS if name.isidentifier()}  # others have rows that are shared
    return frozenset(once) - parameters_of_trainer() - STILL_THERE


# Arguments of today's Trainer that have rows for old values.
STILL_THERE = frozenset(
    ("accelerator", "accumulate_grad_batches", "devices", "max_steps", "plugins", "precision")
) | {"profiler", "strategy"}

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def as_arguments(arguments: Mapping) -> str:
    """Return arguments as one writes them in a call, a long value cut short."""
    return ", ".join(f"{name}={_SHORT.repr(value)}" for name, value in arguments.items())


def _read_rows() -> dict[str, list]:
    """Return the rows of each argument; a text among them names the argument whose rows it has."""
    path = Path(__file__).with_name("trainer_arguments.json")
    table = json.loads(path.read_text(encoding="utf-8"))
    rows: dict[str, list] = {}
    for name, own in table.items():
        rows[name] = []
        for row in own:
            rows[name] += table[row] if isinstance(row, str) else [row]
    return rows


# In the order in which they are translated: how the work is spread, on which devices, the rest. A
# row is the values that it is for (or their kind), the new arguments (None: there are none that
# mean the same), and why.
ROWS = _read_rows()
