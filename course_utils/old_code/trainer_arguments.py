"""Translate the arguments of a Lightning Trainer of 2020 to 2023 into today's.

`trainer_arguments.json` has the rows of each old argument. What an argument meant was read in the
sources of pytorch-lightning 0.7.6, 1.0.8, 1.5.10 and 1.9.5; what today's Trainer takes is asked of
the Lightning that is installed.
"""

import json
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from course_utils.old_code.old_names import parameters_of_trainer


class CannotTranslate(ValueError):
    """Old arguments that nothing today stands for: a line for each, with the reason."""


@dataclass(frozen=True)
class Note:
    """What became of one old argument, name or call.

    Attributes:
        old: as it was written, such as "gpus=2".
        new: what to write today, or "" when nothing is needed any more.
        why: what the old one meant, or why it is gone.
        line: its line in the file or cell, counted from 1; 0 outside a text.
        cell: its cell in a notebook, such as "cell 3"; "" elsewhere.
    """

    old: str
    new: str
    why: str
    line: int = 0
    cell: str = ""

    def __str__(self) -> str:
        line = f"line {self.line}" if self.line else ""
        where = ", ".join(place for place in (self.cell, line) if place)
        return f"{where and where + ': '}{self.old} -> {self.new or 'nothing'}. {self.why}"


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
        changes: a note for each change, by old argument; "" is for an accelerator nobody named.
        refused: by old argument, the reason why it has no translation.
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
        lines = [f"Trainer({listed(self.kwargs)})"]
        if self.fit_kwargs:
            lines.append(f"trainer.fit(model, {listed(self.fit_kwargs)})")
        return "\n".join(lines + [f"  {note}" for note in self.notes])

    def refuse(self, name: str, why: str) -> None:
        """Leave out an argument that has no translation."""
        del self.kwargs[name]
        self.refused[name] = why

    def replace(self, name: str, new: dict, why: str) -> None:
        """Put `new` in the place of an old argument, or refuse it where another one disagrees."""
        others = {key: value for key, value in self.kwargs.items() if key != name}
        text = listed(new)
        if "ckpt_path" in new:
            self.fit_kwargs, new = new, {}
            text = f"trainer.fit(model, {text})"
        elif "callbacks" in new and isinstance(others.get("callbacks"), list):
            new = {"callbacks": others.pop("callbacks") + new["callbacks"]}
        for key, value in new.items():
            if key in others and not same(others[key], value):
                asked = written(key, others[key])
                return self.refuse(name, f"Another argument asks for {asked}: join the two.")
        self.kwargs = {**others, **new}
        self.changes[name] = Note(written(name, self.old[name]), text, why)
        self.moved[name] = list(new)


def modernize(kwargs: Mapping) -> Modern:
    """Translate old Trainer arguments, or the `pl_trainer_kwargs` of Darts, into today's.

    Arguments that today's Trainer takes stay as they are, unless their value is an old one
    (`accelerator="ddp"`). An old Trainer that named no device used the CPU, and so does its
    translation when a count of devices is among the old arguments (`gpus=None`).

    Args:
        kwargs: the arguments by name; it is not changed.

    Raises:
        CannotTranslate: nothing today means the same, or no Lightning ever took it. It names all
            such arguments.
        ModuleNotFoundError: no Lightning is installed.
    """
    if not isinstance(kwargs, Mapping):
        given = _SHORT.repr(kwargs)
        raise CannotTranslate(f"{given}: Trainer arguments are a dict, such as {{'gpus': 2}}.")
    modern = translate(kwargs)
    if modern.refused:
        reasons = modern.refused.items()
        lines = [f"{written(name, kwargs[name])}: {why}" for name, why in reasons]
        raise CannotTranslate("\n".join(lines))
    return modern


def translate(kwargs: Mapping, *, whole: bool = True) -> Modern:
    """Return the translation as far as it goes, with the arguments that have none in `refused`.

    Args:
        kwargs: the arguments by name. A value may be an `Expression`.
        whole: whether these are all the arguments of a Trainer; a dictionary can get others.
    """
    modern = Modern(kwargs, dict(kwargs))
    for name in kwargs:
        if name not in known():
            why = "No Lightning from 0.7 to the one that is installed has this argument."
            modern.refuse(name, why)
    for name in ROWS:
        if name in modern.kwargs:
            _translate_one(modern, name)
    # An old Trainer that named no device used the CPU; today's takes the best one.
    counts = [name for name in OLD_COUNTS if name in modern.changes]
    if counts and "accelerator" not in modern.kwargs and not modern.refused:
        why = (
            "An old Trainer that named no device used the CPU; today's takes the best one."
            " Omit it if you want that."
        )
        modern.kwargs["accelerator"] = "cpu"
        modern.moved[counts[0]].append("accelerator")
        modern.changes[""] = Note("no accelerator", "accelerator='cpu'", why)
    return modern


def _translate_one(modern: Modern, name: str) -> None:
    """Apply the first row that fits the value; without one the value is good today."""
    value = modern.kwargs[name]
    for kind, new, why in _rows_for(modern, name):
        if not _fits(kind, value):
            continue
        shown = value[0] if kind == "core" else value
        why = why.replace("VALUE", _SHORT.repr(shown))
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
    is_backend = isinstance(accelerator, Expression) and modern.kwargs.keys() & set(OLD_COUNTS)
    if name == "accelerator" and is_backend:  # up to 1.4 it was a distributed_backend
        return ROWS["distributed_backend"]
    return ROWS[name]


def _fits(kind: str | list, value: Any) -> bool:
    """Say whether a value is one of a list of values, or of a kind."""
    if isinstance(kind, str):
        return _KINDS[kind](value)
    return same(value.lower() if isinstance(value, str) else value, *kind)


def _are_indices(value: Any) -> bool:
    if not isinstance(value, list | tuple) or not value:
        return False
    are_whole = all(type(one) is int and one >= 0 for one in value)
    return are_whole and len(set(value)) == len(value)


_KINDS: dict[str, Callable[[Any], bool]] = {
    "any": lambda value: True,
    "callback": lambda value: hasattr(value, "on_train_start"),
    "core": lambda value: _are_indices(value) and len(value) == 1 and 1 <= value[0] <= 8,
    "count": lambda value: type(value) is int and (value > 0 or value == -1),
    "expression": lambda value: isinstance(value, Expression),
    "indices": _are_indices,
    "table": lambda value: isinstance(value, dict | list),
    "text": lambda value: isinstance(value, str),
}


def _fill(form: Any, value: Any) -> Any:
    """Return the new value of a row."""
    if form == "VALUE":
        return value
    if form == "VALUE - 1":
        return [value[0] - 1]
    return [value] if form == ["VALUE"] else form


def same(value: Any, *others: Any) -> bool:
    """Say whether a plain value equals one of others of its type (1 is not True).

    Other objects equal only themselves.
    """
    is_plain = type(value) in (bool, int, float, str, list, Expression)
    for other in others:
        if value is other or (is_plain and type(value) is type(other) and value == other):
            return True
    return False


@cache
def known() -> frozenset[str]:
    """Return the arguments that a Trainer takes or once took."""
    once = [name for name in ROWS if name.isidentifier()]  # others have rows that are shared
    return frozenset(once) | frozenset(parameters_of_trainer())


@cache
def removed() -> frozenset[str]:
    """Return the old arguments that today's Trainer does not take."""
    return known() - frozenset(parameters_of_trainer())


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def written(name: object, value: object) -> str:
    """Return an argument as one writes it, a long value cut short."""
    return f"{name if isinstance(name, str) else _SHORT.repr(name)}={_SHORT.repr(value)}"


def listed(arguments: Mapping) -> str:
    """Return arguments as one writes them in a call."""
    return ", ".join(written(name, value) for name, value in arguments.items())


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
OLD_COUNTS = ("gpus", "tpu_cores", "num_tpu_cores", "ipus", "num_processes", "auto_select_gpus")
