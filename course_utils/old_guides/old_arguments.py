"""What became of each old argument of a Lightning Trainer, one rule a name; `old_devices` has those about devices."""

import re
from functools import partial
from typing import Any

from course_utils.old_guides.names import TABLES
from course_utils.old_guides.old_devices import DEVICE_RULES, Change, Refusal, Rule, check_switch, leave_out, same
from course_utils.old_guides.values import Expression


def _rename(new: str, modern: Any, name: str, value: Any) -> Change:
    return {} if value is None else {new: value}, "Only the name changed."


def _share(new: str, modern: Any, name: str, value: Any) -> Change:
    why = "A float is a share of the batches; today an int is a number of them."
    if isinstance(value, Expression):
        return {new: Expression(f"float({value})")}, why
    if type(value) not in (int, float):
        raise Refusal("It was a share of the batches, from 0.0 to 1.0.")
    return {new: float(value)}, why


def _switch(new: str, on: Any, unknown: str, why: str, modern: Any, name: str, value: Any) -> Change:
    """Translate a switch to `new`: `on` where it was on, and `unknown` where its value is an expression."""
    if isinstance(value, Expression):
        return {new: Expression(unknown.format(value))}, why
    check_switch(value)
    return {new: on} if value else {}, why


def _checkpoint_callback(modern: Any, name: str, value: Any) -> Change:
    if value is None or type(value) is bool:
        return _rename("enable_checkpointing", modern, name, value)
    return _join_callbacks(value, "enable_checkpointing=")


def _early_stop(modern: Any, name: str, value: Any) -> Change:
    if same(value, True):
        raise Refusal("It watched 'val_loss'. Write callbacks=[EarlyStopping(monitor=...)] with what you log.")
    if value is None or value is False:
        return {}, "There was none."
    return _join_callbacks(value, "EarlyStopping(monitor=...) or nothing")


def _join_callbacks(value: Any, instead: str) -> Change:
    unknown = f" If it can be True or False, write {instead}." * isinstance(value, Expression)
    return {"callbacks": value}, f"All callbacks are in one list.{unknown}"


def _progress_bar(modern: Any, name: str, value: Any) -> Change:
    if same(value, 0):
        return {"enable_progress_bar": False}, "0 switched the bar off."
    if value is None or same(value, 1):
        return {}, "The bar is the same without it."
    if not isinstance(value, Expression) and (type(value) is not int or value < 0):
        raise Refusal("It was a whole number, 0 or more.")
    switch = " If it can be 0, write enable_progress_bar=False for that." * isinstance(value, Expression)
    return {}, f"It is an argument of a callback now: callbacks=[TQDMProgressBar(refresh_rate={value})].{switch}"


def _weights_summary(modern: Any, name: str, value: Any) -> Change:
    if value is None:
        return {"enable_model_summary": False}, "None switched the table of layers off."
    if same(value, "top"):
        return {}, "The table of layers is the same without it."
    if same(value, "full"):
        return {}, "A callback shows all layers now: callbacks=[ModelSummary(max_depth=-1)]."
    raise Refusal("It was 'top', 'full' or None: see enable_model_summary and callbacks=[ModelSummary(max_depth=-1)].")


def _accumulate(modern: Any, name: str, value: Any) -> Change | None:
    if value is None:
        return {}, "None meant 1, the default. Today a Trainer takes None and fails in its first step."
    if isinstance(value, dict | list):
        raise Refusal("Write callbacks=[GradientAccumulationScheduler(scheduling={epoch: batches})].")
    return None


def _profiler(modern: Any, name: str, value: Any) -> Change | None:
    return ({"profiler": "simple"} if value else {}, "A profiler has a name now.") if type(value) is bool else None


def _resume(modern: Any, name: str, value: Any) -> Change:
    if value is None:
        return {}, "Nothing was resumed."
    modern.fit_kwargs["ckpt_path"] = value
    return {}, "It is an argument of fit now."


_PLUGIN = re.compile(
    r"\[?\s*((?:\w+\.)*)(DDP|DeepSpeed)(?:Plugin|Strategy)(\((?:[^()]|\([^()]*\))*\))\s*,?\s*\]?"  # one alone
)


def _plugins(modern: Any, name: str, value: Any) -> Change | None:
    for one in value if isinstance(value, list | tuple) else [value]:
        if isinstance(one, str):
            raise Refusal(f"A plugin is no longer named by a string. See whether {one!r} is a strategy today.")
    plugin = _PLUGIN.fullmatch(value.text) if isinstance(value, Expression) else None
    if plugin is None:
        return None
    if modern.kwargs.get("strategy", "ddp") in ("ddp", "deepspeed", None):
        modern.kwargs.pop("strategy", None)
    module = plugin[1].replace("training_type.", "").replace("plugins.", "strategies.")
    return {"strategy": Expression(f"{module}{plugin[2]}Strategy{plugin[3]}")}, "It is a strategy now."


# Devices first: what `precision` meant depends on them.
RULES: dict[str, Rule] = {
    **DEVICE_RULES,
    **{old: partial(_rename, new) for old, new in TABLES["renamed_arguments"].items()},
    **{old: partial(_share, new) for old, new in TABLES["shares_of_batches"].items()},
    "use_amp": partial(
        _switch, "precision", "16-mixed", '"16-mixed" if {} else "32-true"', "It meant mixed precision."
    ),
    "devices": partial(leave_out, [None], "", why="None took what was there, as saying nothing does today."),
    "max_steps": partial(
        leave_out, [None], "", why="None meant no limit, the default. Today a Trainer given None fails."
    ),
    "profiler": _profiler,
    "plugins": _plugins,
    "reload_dataloaders_every_epoch": partial(
        _switch, "reload_dataloaders_every_n_epochs", 1, "int({})", "It is every n epochs now."
    ),
    "resume_from_checkpoint": _resume,
    "checkpoint_callback": _checkpoint_callback,
    "early_stop_callback": _early_stop,
    "progress_bar_refresh_rate": _progress_bar,
    "weights_summary": _weights_summary,
    "accumulate_grad_batches": _accumulate,
    "amp_level": lambda modern, name, value: ({}, "It was for NVIDIA's Apex alone."),
    # Gone: the values that asked for nothing, which can be left out, and what to do in place of any other.
    **{name: partial(leave_out, idle, instead) for name, (idle, instead) in TABLES["gone_arguments"].items()},
}
