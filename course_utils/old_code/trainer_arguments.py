"""Translate the arguments of a Lightning Trainer of 2020 to 2023 into today's.

What an argument meant was read in the sources of pytorch-lightning 0.7.6, 1.0.8, 1.5.10 and 1.9.5;
what today's Trainer takes is asked of the Lightning that is installed.
"""

import difflib
import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from course_utils.old_code.device_arguments import (
    DEVICE_RULES,
    OLD_COUNTS,
    Change,
    Refusal,
    Rule,
    by_value,
    named_a_device,
    same,
)
from course_utils.old_code.installed import trainer_parameters
from course_utils.old_code.notes import Expression, Note
from course_utils.old_code.old_names import TABLES


class _Short(reprlib.Repr):
    """Cut long values short, and write an object without a text of its own as Type(...)."""

    def repr_instance(self, value: object, level: int) -> str:
        if type(value).__repr__ is object.__repr__:
            return f"{type(value).__name__}(...)"
        return super().repr_instance(value, level)


_SHORT = _Short()
_SHORT.maxstring = _SHORT.maxother = 80


class CannotTranslate(ValueError):
    """Old arguments that nothing today stands for: a line for each, with the reason."""


@dataclass
class Modern:
    """Today's form of old Trainer arguments. Each rule replaces its own argument in it.

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

    def replace(self, name: str, new: dict, why: str) -> None:
        """Put `new` in the place of an old argument; a callback in it joins the callbacks."""
        others = {key: value for key, value in self.kwargs.items() if key != name}
        for key, value in new.items():
            if key != "callbacks" and key in others and not same(others[key], value):
                asked = written(key, others[key])
                raise Refusal(f"Another argument asks for {asked}. Keep one of the two.")
        text = listed(new)
        if name == "resume_from_checkpoint" and self.fit_kwargs:
            text = f"trainer.fit(model, {listed(self.fit_kwargs)})"
        if "callbacks" in new:
            callback = new["callbacks"]
            if not (isinstance(callback, Expression) or hasattr(callback, "on_train_start")):
                raise Refusal("This is not a callback of Lightning.")
            text = written("callbacks", [callback])
            new = {**new, "callbacks": [*_as_list(others.get("callbacks")), callback]}
        self.kwargs = {**others, **new}
        self.changes[name] = Note(written(name, self.old[name]), text, why)
        self.moved[name] = list(new)


def modernize(kwargs: Mapping) -> Modern:
    """Translate old Trainer arguments, or the `pl_trainer_kwargs` of Darts, into today's.

    Arguments that today's Trainer takes stay as they are, unless their value is an old one
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
            modern.refused[name] = _unknown(name)
            del modern.kwargs[name]
    for name, rule in RULES.items():
        if name not in modern.kwargs:
            continue
        try:
            change = rule(modern, name, modern.kwargs[name])
            if change is not None:
                modern.replace(name, *change)
        except Refusal as refusal:
            modern.refused[name] = str(refusal)
            del modern.kwargs[name]
    if named_a_device(kwargs, whole) and "accelerator" not in modern.kwargs and not modern.refused:
        why = (
            "An old Trainer that named no device used the CPU; today's takes the best one."
            " Omit it if you want that."
        )
        modern.kwargs["accelerator"] = "cpu"
        # It stands where a count of devices stood, if there was one.
        counts = [old for old in modern.moved if old in OLD_COUNTS]
        modern.moved[[*counts, *modern.moved][0]].append("accelerator")
        modern.changes[""] = Note("no accelerator", "accelerator='cpu'", why)
    return modern


def _unknown(name: object) -> str:
    close = difflib.get_close_matches(name, sorted(known()), 1) if isinstance(name, str) else []
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"No Lightning from 0.7 to the one that is installed has this argument.{hint}"


@cache
def known() -> frozenset[str]:
    """Return the arguments that a Trainer takes or once took."""
    return frozenset(RULES) | frozenset(trainer_parameters())


@cache
def removed() -> frozenset[str]:
    """Return the old arguments that today's Trainer does not take."""
    return known() - frozenset(trainer_parameters())


def written(name: object, value: object) -> str:
    """Return an argument as one writes it, a long value cut short."""
    return f"{name if isinstance(name, str) else _SHORT.repr(name)}={_SHORT.repr(value)}"


def listed(arguments: Mapping) -> str:
    """Return arguments as one writes them in a call."""
    return ", ".join(written(name, value) for name, value in arguments.items())


def _as_list(callbacks: Any) -> list:
    if callbacks is None:
        return []
    if isinstance(callbacks, Expression):  # a list that is known only when the program runs
        return [Expression(f"*({callbacks})" if " " in callbacks.text else f"*{callbacks}")]
    return list(callbacks) if isinstance(callbacks, list | tuple) else [callbacks]


# One rule for each old argument, as in `device_arguments`.


def _rename(new: str, modern: Modern, name: str, value: Any) -> Change:
    return ({} if value is None else {new: value}), "Only the name changed."


def _share(new: str, modern: Modern, name: str, value: Any) -> Change:
    why = "A float is a share of the batches; today an int is a number of them."
    if isinstance(value, Expression):
        return {new: Expression(f"float({value})")}, why
    if type(value) not in (int, float):
        raise Refusal("It was a share of the batches, from 0.0 to 1.0.")
    return {new: float(value)}, why


def _callback(rows: Any, instead: str, modern: Modern, name: str, value: Any) -> Change:
    """Put a callback into the list of them; a switch that stood in its place has a row."""
    change = by_value(rows, "", modern, name, value)
    if change is not None:
        return change
    why = "All callbacks are in one list."
    if isinstance(value, Expression):
        why += f" If it can be True or False, write {instead}."
    return {"callbacks": value}, why


def _progress_bar(modern: Modern, name: str, value: Any) -> Change:
    if same(value, 0):
        return {"enable_progress_bar": False}, "0 switched the bar off."
    if value is None or same(value, 1):
        return {}, "The bar is the same without it."
    is_unknown = isinstance(value, Expression)
    if not is_unknown and (type(value) is not int or value < 0):
        raise Refusal("It was a whole number, 0 or more.")
    callback = f"callbacks=[TQDMProgressBar(refresh_rate={value})]"
    switch = " If it can be 0, write enable_progress_bar=False for that." if is_unknown else ""
    return {}, f"It is an argument of a callback now: {callback}.{switch}"


def _accumulate(modern: Modern, name: str, value: Any) -> Change | None:
    if value is None:
        why = "None meant 1, the default. Today a Trainer takes None and fails in its first step."
        return {}, why
    if isinstance(value, dict | list):
        scheduler = "GradientAccumulationScheduler(scheduling={epoch: batches})"
        raise Refusal(f"Write callbacks=[{scheduler}].")
    return None


def _resume(modern: Modern, name: str, value: Any) -> Change:
    if value is None:
        return {}, "Nothing was resumed."
    modern.fit_kwargs["ckpt_path"] = value
    return {}, "It is an argument of fit now."


_PLUGIN = re.compile(r"\[?\s*(?:\w+\.)*(DDP|DeepSpeed)Plugin(\([^()]*\))\s*,?\s*\]?")


def _plugins(modern: Modern, name: str, value: Any) -> Change | None:
    for one in value if isinstance(value, list | tuple) else [value]:
        if isinstance(one, str):
            why = (
                "A plugin is no longer named by a string: "
                f"write strategy={one!r}, if that is a strategy today."
            )
            raise Refusal(TABLES["gone_strategies"].get(one.lower(), why))
    plugin = _PLUGIN.fullmatch(value.text) if isinstance(value, Expression) else None
    if plugin is None:
        return None
    if modern.kwargs.get("strategy", "ddp") in ("ddp", "deepspeed", None):
        modern.kwargs.pop("strategy", None)  # the plugin says the same
    kind, arguments = plugin.groups()
    return {"strategy": Expression(f"{kind}Strategy{arguments}")}, "It is a strategy now."


def _amp_level(modern: Modern, name: str, value: Any) -> Change:
    return {}, "It was for NVIDIA's Apex alone."


def _make_rules() -> dict[str, Rule]:
    # Devices first: what `precision` meant depends on them.
    rules: dict[str, Rule] = dict(DEVICE_RULES)
    for old, new in TABLES["renamed_arguments"].items():
        rules[old] = partial(_rename, new)
    for old, new in TABLES["shares_of_batches"].items():
        rules[old] = partial(_share, new)
    for old, (rows, instead) in TABLES["values_of_arguments"].items():
        rules[old] = partial(by_value, rows, instead)
    rules["plugins"] = _plugins
    rules["resume_from_checkpoint"] = _resume
    for old, (rows, instead) in TABLES["arguments_in_callbacks"].items():
        rules[old] = partial(_callback, rows, instead)
    rules["progress_bar_refresh_rate"] = _progress_bar
    rules["accumulate_grad_batches"] = _accumulate
    rules["amp_level"] = _amp_level
    # Gone: the values that asked for nothing can be left out; any other gets the advice.
    default = "That was the default, and what Lightning does today."
    for old, (idle, instead) in TABLES["gone_arguments"].items():
        rules[old] = partial(by_value, [[idle, {}, default]], instead)
    return rules


RULES = _make_rules()
