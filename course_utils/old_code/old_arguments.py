"""What became of each old argument of a Lightning Trainer, one rule a name; `old_devices` has those
about devices.
"""

import re
from functools import partial
from typing import Any

from course_utils.old_code.names import TABLES
from course_utils.old_code.old_devices import (
    DEVICE_RULES,
    Change,
    Refusal,
    Rule,
    by_value,
    check_switch,
    same,
)
from course_utils.old_code.values import Expression


def _rename(new: str, modern: Any, name: str, value: Any) -> Change:
    return {} if value is None else {new: value}, "Only the name changed."


def _share(new: str, modern: Any, name: str, value: Any) -> Change:
    why = "A float is a share of the batches; today an int is a number of them."
    if isinstance(value, Expression):
        return {new: Expression(f"float({value})")}, why
    if type(value) not in (int, float):
        raise Refusal("It was a share of the batches, from 0.0 to 1.0.")
    return {new: float(value)}, why


def _switch(
    new: str, on: Any, unknown: str, why: str, modern: Any, name: str, value: Any
) -> Change:
    """Translate a switch to `new`: `on` where it was on, and `unknown` where its value is an
    expression.
    """
    if isinstance(value, Expression):
        return {new: Expression(unknown.format(value))}, why
    check_switch(value)
    return {new: on} if value else {}, why


def _callback(rows: Any, instead: str, modern: Any, name: str, value: Any) -> Change:
    """Put a callback into the list of them; a switch that stood in its place has a row."""
    unknown = f" If it can be True or False, write {instead}." * isinstance(value, Expression)
    return by_value(rows, "", modern, name, value) or (
        {"callbacks": value},
        f"All callbacks are in one list.{unknown}",
    )


def _progress_bar(modern: Any, name: str, value: Any) -> Change:
    if same(value, 0):
        return {"enable_progress_bar": False}, "0 switched the bar off."
    if value is None or same(value, 1):
        return {}, "The bar is the same without it."
    if not isinstance(value, Expression) and (type(value) is not int or value < 0):
        raise Refusal("It was a whole number, 0 or more.")
    switch = " If it can be 0, write enable_progress_bar=False for that." * isinstance(
        value, Expression
    )
    return (
        {},
        f"It is an argument of a callback now: callbacks=[TQDMProgressBar(refresh_rate={value})].{switch}",
    )


def _accumulate(modern: Any, name: str, value: Any) -> Change | None:
    if value is None:
        return (
            {},
            "None meant 1, the default. Today a Trainer takes None and fails in its first step.",
        )
    if isinstance(value, dict | list):
        raise Refusal(
            "Write callbacks=[GradientAccumulationScheduler(scheduling={epoch: batches})]."
        )
    return None


def _resume(modern: Any, name: str, value: Any) -> Change:
    if value is None:
        return {}, "Nothing was resumed."
    modern.fit_kwargs["ckpt_path"] = value
    return {}, "It is an argument of fit now."


_PLUGIN = re.compile(
    # one alone
    r"\[?\s*((?:\w+\.)*)(DDP|DeepSpeed)(?:Plugin|Strategy)(\((?:[^()]|\([^()]*\))*\))\s*,?\s*\]?"
)


def _plugins(modern: Any, name: str, value: Any) -> Change | None:
    for one in value if isinstance(value, list | tuple) else [value]:
        if isinstance(one, str):
            why = f"A plugin is no longer named by a string: write strategy={one!r}, if that is a strategy today."
            raise Refusal(TABLES["gone_strategies"].get(one.lower(), why))
    plugin = _PLUGIN.fullmatch(value.text) if isinstance(value, Expression) else None
    if plugin is None:
        return None
    if modern.kwargs.get("strategy", "ddp") in ("ddp", "deepspeed", None):
        modern.kwargs.pop("strategy", None)
    module = plugin[1].replace("training_type.", "").replace("plugins.", "strategies.")
    return {
        "strategy": Expression(f"{module}{plugin[2]}Strategy{plugin[3]}")
    }, "It is a strategy now."


_DEFAULT = "That was the default, and what Lightning does today."
# Devices first: what `precision` meant depends on them.
RULES: dict[str, Rule] = {
    **DEVICE_RULES,
    **{old: partial(_rename, new) for old, new in TABLES["renamed_arguments"].items()},
    **{old: partial(_share, new) for old, new in TABLES["shares_of_batches"].items()},
    "use_amp": partial(
        _switch,
        "precision",
        "16-mixed",
        '"16-mixed" if {} else "32-true"',
        "It meant mixed precision.",
    ),
    **{
        name: partial(by_value, rows, instead)
        for name, (rows, instead) in TABLES["values_of_arguments"].items()
    },
    "plugins": _plugins,
    "reload_dataloaders_every_epoch": partial(
        _switch, "reload_dataloaders_every_n_epochs", 1, "int({})", "It is every n epochs now."
    ),
    "resume_from_checkpoint": _resume,
    **{
        name: partial(_callback, rows, instead)
        for name, (rows, instead) in TABLES["arguments_in_callbacks"].items()
    },
    "progress_bar_refresh_rate": _progress_bar,
    "accumulate_grad_batches": _accumulate,
    "amp_level": lambda modern, name, value: ({}, "It was for NVIDIA's Apex alone."),
    # Gone: the values that asked for nothing, which can be left out, and what to do in place of any
    # other.
    **{
        name: partial(by_value, [[idle, {}, _DEFAULT]], to)
        for name, (idle, to) in TABLES["gone_arguments"].items()
    },
}
