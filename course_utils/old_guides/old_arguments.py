"""What became of each old argument of a Lightning Trainer, one rule a name; `old_devices` has those about devices."""

from collections.abc import Callable
from dataclasses import dataclass, field

from course_utils.old_guides.old_devices import DEVICE_RULES, Refusal, Rule, needless, same


@dataclass(frozen=True)
class NewCallback:
    """A callback that takes the place of an argument, yet to be made of the caller's Lightning."""

    name: str
    arguments: dict = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"[{self.name}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})]"


def _renamed(new: str) -> Callable:
    def rule(draft, name: str, value) -> None:
        draft.replace(name, {} if value is None else {new: value}, "Only the name changed.")

    return rule


def _share(new: str) -> Callable:
    def rule(draft, name: str, value) -> None:
        if type(value) not in (int, float):
            raise Refusal("it was a share of the batches, from 0.0 to 1.0.")
        draft.replace(name, {new: float(value)}, "A float is a share of the batches; today an int is a number of them.")

    return rule


def _switch(new: dict, why: str) -> Callable:
    def rule(draft, name: str, value) -> None:
        if value is not None and type(value) is not bool:
            raise Refusal("it was True or False.")
        draft.replace(name, new if value else {}, why)

    return rule


def _checkpoint_callback(draft, name: str, value) -> None:
    if value is None or type(value) is bool:
        _renamed("enable_checkpointing")(draft, name, value)
    else:
        draft.replace(name, {"callbacks": value}, "All callbacks are in one list.")


def _early_stop(draft, name: str, value) -> None:
    if same(value, True):
        raise Refusal("it watched 'val_loss'. Write callbacks=[EarlyStopping(monitor=...)] with what you log.")
    new = {} if value is None or value is False else {"callbacks": value}
    draft.replace(name, new, "All callbacks are in one list.")


def _progress_bar(draft, name: str, value) -> None:
    if value is not None and (type(value) is not int or value < 0):
        raise Refusal("it was a whole number, 0 or more.")
    rate, position = (value, draft.new.get("process_position")) if name.endswith("rate") else (None, value)
    arguments = {"refresh_rate": rate} if rate not in (None, 1) else {}
    if type(position) is int and position > 0:
        arguments["process_position"] = position
    if rate == 0:
        draft.replace(name, {"enable_progress_bar": False}, "0 switched the bar off.")
    elif same(draft.new.get("enable_progress_bar"), False):
        draft.replace(name, {}, "There is no bar.")
    elif not arguments or draft.has_callback("ProgressBar"):
        draft.replace(name, {}, "The bar is the same without it.")
    else:
        draft.replace(name, {"callbacks": NewCallback("TQDMProgressBar", arguments)}, _CALLBACK)


_CALLBACK = "A callback does this now."


def _weights_summary(draft, name: str, value) -> None:
    if value is None:
        draft.replace(name, {"enable_model_summary": False}, "None switched the table of layers off.")
    elif same(value, "top") or draft.has_callback("ModelSummary") or same(draft.new.get("enable_model_summary"), False):
        draft.replace(name, {}, "The table of layers is the same without it.")
    elif same(value, "full"):
        draft.replace(name, {"callbacks": NewCallback("ModelSummary", {"max_depth": -1})}, _CALLBACK)
    else:
        raise Refusal("it was 'top', 'full' or None.")


def _accumulate(draft, name: str, value) -> None:
    if value is None:
        draft.replace(name, {}, "None meant 1, the default. Today a Trainer takes None and fails in its first step.")
    elif isinstance(value, dict):
        callback = NewCallback("GradientAccumulationScheduler", {"scheduling": value})
        draft.replace(name, {"callbacks": callback}, "A dict of epochs goes to a callback now.")
    elif isinstance(value, list):
        raise Refusal("lists of epochs are gone. Write a dict, {epoch: batches}.")


def _profiler(draft, name: str, value) -> None:
    if type(value) is bool:
        draft.replace(name, {"profiler": "simple"} if value else {}, "A profiler has a name now.")


def _left_out(why: str) -> Callable:
    def rule(draft, name: str, value) -> None:
        if value is None:
            draft.replace(name, {}, why)

    return rule


def _resume(draft, name: str, value) -> None:
    if value is not None:
        draft.fit["ckpt_path"] = value
    draft.replace(name, {}, "Nothing was resumed." if value is None else "Write trainer.fit(model, ckpt_path=...).")


def _plugins(draft, name: str, value) -> None:
    for one in value if isinstance(value, list | tuple) else [value]:
        if isinstance(one, str):
            raise Refusal(f"a plugin is no longer named by a string. See whether {one!r} is a strategy today.")


_TUNER = "it only acted in trainer.tune(), which is gone. Call Tuner(trainer).{}(model), from lightning.pytorch.tuner."

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
    "amp_level": lambda draft, name, value: draft.replace(name, {}, "It was for NVIDIA's Apex alone."),
}
_FLUSH = "the loggers take it: CSVLogger(flush_logs_every_n_steps=)."

# Gone: the values that asked for nothing, which can be left out, and what to do in place of any other.
GONE: dict[str, tuple[list, str]] = {
    "progress_bar_callback": ([True, None], "write enable_progress_bar=False, or put it in callbacks."),
    "cluster_environment": ([None], "put it in the list of plugins."),
    "amp_backend": (["native", None], "NVIDIA's Apex is gone. PyTorch's own precision=16 replaces it."),
    "auto_lr_find": ([False], _TUNER.format("lr_find")),
    "auto_scale_batch_size": ([False, None], _TUNER.format("scale_batch_size")),
    "automatic_optimization": ([True, None], "set self.automatic_optimization in the LightningModule."),
    "enable_pl_optimizer": ([True, False, None], "it was True or False."),
    "flush_logs_every_n_steps": ([100, None], _FLUSH),
    "log_save_interval": ([100, None], _FLUSH),
    "log_gpu_memory": ([None, False], "DeviceStatsMonitor(), a callback, logs PyTorch's own figures."),
    "move_metrics_to_cpu": ([False], "write self.log(name, value.cpu()) where you log."),
    "multiple_trainloader_mode": (
        ["max_size_cycle"],
        "give fit a CombinedLoader(loaders, mode=...), from lightning.pytorch.utilities.",
    ),
    "prepare_data_per_node": ([True, None], "set self.prepare_data_per_node in the LightningDataModule."),
    "print_nan_grads": ([False, None], "detect_anomaly=True says which operation made the NaN."),
    "stochastic_weight_avg": (
        [False],
        "write callbacks=[StochasticWeightAveraging(swa_lrs=...)]; the rate has no default any more.",
    ),
    "terminate_on_nan": (
        [False, None],
        "it looked at all weights. EarlyStopping(..., check_finite=True) looks at the value you monitor.",
    ),
    "track_grad_norm": ([-1], "log lightning.pytorch.utilities.grad_norm in on_before_optimizer_step."),
    "truncated_bptt_steps": ([None], "split the sequence in training_step, with manual optimization."),
    "weights_save_path": ([None], "write callbacks=[ModelCheckpoint(dirpath=...)], which adds no folder for each run."),
}
RULES.update({name: needless(*defaults, instead=instead) for name, (defaults, instead) in GONE.items()})
