"""What became of each old argument of a Lightning Trainer, one rule a name; `old_devices` has those about devices."""

from typing import Any

from course_utils.old_guides.names import TABLES
from course_utils.old_guides.old_devices import DEVICE_RULES, Change, Refusal, Rule, check_switch, needless, same
from course_utils.old_guides.values import NewCallback

_CALLBACK = "A callback does this now."
_LIST = "All callbacks are in one list."


def _renamed(new: str) -> Rule:
    return lambda draft, name, value: ({} if value is None else {new: value}, "Only the name changed.")


def _left_out(why: str) -> Rule:
    return lambda draft, name, value: ({}, why) if value is None else None


def _share(new: str) -> Rule:
    def rule(draft: Any, name: str, value: Any) -> Change:
        if type(value) not in (int, float):
            raise Refusal("it was a share of the batches, from 0.0 to 1.0.")
        return {new: float(value)}, "A float is a share of the batches; today an int is a number of them."

    return rule


def _switch(new: dict[str, Any], why: str) -> Rule:
    def rule(draft: Any, name: str, value: Any) -> Change:
        check_switch(value)
        return new if value else {}, why

    return rule


def _checkpoint_callback(draft: Any, name: str, value: Any) -> Change | None:
    if value is None or type(value) is bool:
        return _renamed("enable_checkpointing")(draft, name, value)
    return {"callbacks": value}, _LIST


def _early_stop(draft: Any, name: str, value: Any) -> Change:
    if same(value, True):
        raise Refusal("it watched 'val_loss'. Write callbacks=[EarlyStopping(monitor=...)] with what you log.")
    return ({}, "There was none.") if value is None or value is False else ({"callbacks": value}, _LIST)


def _progress_bar(draft: Any, name: str, value: Any) -> Change:
    if value is not None and (type(value) is not int or value < 0):
        raise Refusal("it was a whole number, 0 or more.")
    rate, position = (value, draft.new.get("process_position")) if name.endswith("rate") else (None, value)
    arguments = {"refresh_rate": rate} if rate not in (None, 1) else {}
    if type(position) is int and position > 0:
        arguments["process_position"] = position
    if rate == 0:
        return {"enable_progress_bar": False}, "0 switched the bar off."
    if same(draft.new.get("enable_progress_bar"), False):
        return {}, "There is no bar."
    if not arguments or draft.has_callback("ProgressBar"):
        return {}, "The bar is the same without it."
    return {"callbacks": NewCallback("TQDMProgressBar", arguments)}, _CALLBACK


def _weights_summary(draft: Any, name: str, value: Any) -> Change:
    if value is None:
        return {"enable_model_summary": False}, "None switched the table of layers off."
    if same(value, "top") or draft.has_callback("ModelSummary") or same(draft.new.get("enable_model_summary"), False):
        return {}, "The table of layers is the same without it."
    if same(value, "full"):
        return {"callbacks": NewCallback("ModelSummary", {"max_depth": -1})}, _CALLBACK
    raise Refusal("it was 'top', 'full' or None.")


def _accumulate(draft: Any, name: str, value: Any) -> Change | None:
    if value is None:
        return {}, "None meant 1, the default. Today a Trainer takes None and fails in its first step."
    if isinstance(value, list):
        raise Refusal("lists of epochs are gone. Write a dict, {epoch: batches}.")
    callback = NewCallback("GradientAccumulationScheduler", {"scheduling": value})
    return ({"callbacks": callback}, "A dict of epochs goes to a callback now.") if isinstance(value, dict) else None


def _profiler(draft: Any, name: str, value: Any) -> Change | None:
    return ({"profiler": "simple"} if value else {}, "A profiler has a name now.") if type(value) is bool else None


def _resume(draft: Any, name: str, value: Any) -> Change:
    if value is None:
        return {}, "Nothing was resumed."
    draft.fit["ckpt_path"] = value
    return {}, "It is an argument of fit now."


def _plugins(draft: Any, name: str, value: Any) -> None:
    for one in value if isinstance(value, list | tuple) else [value]:
        if isinstance(one, str):
            raise Refusal(f"a plugin is no longer named by a string. See whether {one!r} is a strategy today.")


# Devices first: what `precision` meant depends on them. The progress bar's rate comes before its position.
RULES: dict[str, Rule] = {
    **DEVICE_RULES,
    # Another name.
    "replace_sampler_ddp": _renamed("use_distributed_sampler"),
    "row_log_interval": _renamed("log_every_n_steps"),
    "add_row_log_interval": _renamed("log_every_n_steps"),
    "default_save_path": _renamed("default_root_dir"),
    "gradient_clip": _renamed("gradient_clip_val"),
    "nb_gpu_nodes": _renamed("num_nodes"),
    "max_nb_epochs": _renamed("max_epochs"),
    "min_nb_epochs": _renamed("min_epochs"),
    "nb_sanity_val_steps": _renamed("num_sanity_val_steps"),
    "show_progress_bar": _renamed("enable_progress_bar"),
    "train_percent_check": _share("limit_train_batches"),
    "val_percent_check": _share("limit_val_batches"),
    "test_percent_check": _share("limit_test_batches"),
    "overfit_pct": _share("overfit_batches"),
    # Another form.
    "use_amp": _switch({"precision": "16-mixed"}, "It meant mixed precision."),
    "devices": _left_out("None took what was there, as saying nothing does today."),
    "max_steps": _left_out("None meant no limit, the default. Today a Trainer given None fails."),
    "profiler": _profiler,
    "plugins": _plugins,
    "reload_dataloaders_every_epoch": _switch({"reload_dataloaders_every_n_epochs": 1}, "It is every n epochs now."),
    "resume_from_checkpoint": _resume,
    # A callback.
    "checkpoint_callback": _checkpoint_callback,
    "early_stop_callback": _early_stop,
    "progress_bar_refresh_rate": _progress_bar,
    "process_position": _progress_bar,
    "weights_summary": _weights_summary,
    "accumulate_grad_batches": _accumulate,
    "amp_level": lambda draft, name, value: ({}, "It was for NVIDIA's Apex alone."),
}

# Gone: the values that asked for nothing, which can be left out, and what to do in place of any other.
GONE: dict[str, tuple[list, str]] = TABLES["gone_arguments"]
RULES.update({name: needless(*defaults, instead=instead) for name, (defaults, instead) in GONE.items()})
