"""What becomes of an old Trainer argument whose value is not written out, such as `gpus=args.gpus`."""

import re
from typing import Any

from course_utils.old_guides.old_devices import Change, Refusal, Rule, point
from course_utils.old_guides.values import Expression, NewCallback


def _as(new: str, why: str, form: str = "{}") -> Rule:
    """Return the rule that gives the expression, put into a form, to a new argument."""
    return lambda draft, name, value: ({new: Expression(form.format(value.text))}, why)


def _on(kind: str, why: str) -> Rule:
    return lambda draft, name, value: point(draft, kind, value, why)


def _refused(why: str) -> Rule:
    def rule(draft: Any, name: str, value: Expression) -> Change:
        raise Refusal(why)

    return rule


def _accelerator(draft: Any, name: str, value: Expression) -> Change | None:
    if not {"gpus", "num_processes", "tpu_cores"} & draft.new.keys():
        return None  # today's name for the device
    return {"strategy": value}, f"Beside gpus= it said how to spread the work. {_SPREAD}"


def _plugins(draft: Any, name: str, value: Expression) -> Change | None:
    plugin = re.fullmatch(
        r"\[?\s*((?:\w+\.)*)(DDP|DeepSpeed)(?:Plugin|Strategy)(\(.*\))\s*,?\s*\]?", value.text, re.DOTALL
    )
    if plugin is None:
        return None
    if draft.new.get("strategy", "ddp") in ("ddp", "deepspeed", None):
        draft.new.pop("strategy", None)
    module = plugin[1].replace("plugins.", "strategies.")
    return {"strategy": Expression(f"{module}{plugin[2]}Strategy{plugin[3]}")}, "It is a strategy now."


def _bar(draft: Any, name: str, value: Expression) -> Change:
    argument = "refresh_rate" if name.endswith("rate") else name
    why = "A callback does this now. If it can be 0, write enable_progress_bar=False for that."
    return {"callbacks": NewCallback("TQDMProgressBar", {argument: value})}, why


_SPREAD = "None is 'auto' today; 'dp', 'ddp2' and 'horovod' are gone; 'ddp_cpu' is accelerator='cpu' with 'ddp_spawn'."
_SHARE = "A float is a share of the batches; today an int is a number of them."
_TPU = "None or 0 meant no TPU. A list counted cores from 1 and counts from 0 today: subtract 1."
_CALLBACK = "All callbacks are in one list. If it can be True or False, write {}."
UNKNOWN: dict[str, Rule] = {
    "gpus": _on(
        "gpu", "A number says how many GPUs, a list which. If it can be 0 or None, write accelerator='cpu' for that."
    ),
    "tpu_cores": _on("tpu", _TPU),
    "num_tpu_cores": _on("tpu", _TPU),
    "num_processes": _on("cpu", "It counted processes on the CPU."),
    "distributed_backend": _as("strategy", f"How to spread the work is the strategy now. {_SPREAD}"),
    "accelerator": _accelerator,
    "auto_select_gpus": lambda draft, name, value: ({}, "Free GPUs are found by find_usable_cuda_devices(n) today."),
    "train_percent_check": _as("limit_train_batches", _SHARE, "float({})"),
    "val_percent_check": _as("limit_val_batches", _SHARE, "float({})"),
    "test_percent_check": _as("limit_test_batches", _SHARE, "float({})"),
    "overfit_pct": _as("overfit_batches", _SHARE, "float({})"),
    "use_amp": _as("precision", "It meant mixed precision.", '"16-mixed" if {} else "32-true"'),
    "reload_dataloaders_every_epoch": _as("reload_dataloaders_every_n_epochs", "It is every n epochs now.", "int({})"),
    "checkpoint_callback": _as("callbacks", _CALLBACK.format("enable_checkpointing=")),
    "early_stop_callback": _as("callbacks", _CALLBACK.format("EarlyStopping(monitor=...) or nothing")),
    "progress_bar_refresh_rate": _bar,
    "process_position": _bar,
    "plugins": _plugins,
    "weights_summary": _refused(
        "None is enable_model_summary=False, and 'full' is callbacks=[ModelSummary(max_depth=-1)]."
    ),
}
