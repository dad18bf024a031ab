"""Arguments that make a Lightning Trainer use one device, and a Lightning that says less."""

import logging
import os
import sys
import warnings
from types import ModuleType
from typing import Any

import torch

from course_utils.devices import Device, as_device
from course_utils.kinds import KINDS
from course_utils.missing_packages import explain_missing_package
from course_utils.xla import (
    import_torch_xla_before_lightning,
    start_xla,
    variable_default,
)

with explain_missing_package():
    try:
        import lightning.pytorch as pl
    except ModuleNotFoundError:  # Kaggle has the same package under its older name
        import pytorch_lightning as pl  # type: ignore[no-redef]

# Trainer arguments for a training of which only the result matters.
QUIET = dict.fromkeys(
    ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False
)


def trainer_kwargs(
    device: Device | torch.device | str | None = None, *, package: ModuleType = pl
) -> dict[str, Any]:
    """Return the arguments that make a Lightning Trainer use one device.

    >>> trainer_kwargs("cpu")
    {'accelerator': 'cpu', 'devices': 1}

    Args:
        device: a `Device`, a `torch.device` or its name; None takes what `pick_device` takes, or
            the CPU where that is an Intel GPU, on which Lightning does not train.
        package: the Lightning whose Trainer will take them. Darts needs `pytorch_lightning`: it and
            `lightning.pytorch` do not accept each other's objects.

    Returns:
        The arguments to unpack into `Trainer(...)`. On XLA a `precision` beside them has no effect:
        it sets a variable that XLA has read by then.

    Raises:
        ValueError, RuntimeError: as `pick_device` does.
        RuntimeError: the device is XLA, and torch_xla does not load or is started too late; see
            `start_xla`.
        NotImplementedError: Lightning has no accelerator for this kind of device.
    """
    unnamed = device is None and not os.environ.get("COURSE_DEVICE")
    device = as_device(device)
    if unnamed and not KINDS[device.kind].lightning:
        device = as_device("cpu")
    kind = KINDS[device.kind]
    import_torch_xla_before_lightning()
    if not kind.lightning:
        known = [name for name, each in KINDS.items() if each.lightning]
        raise NotImplementedError(
            f"a Lightning Trainer cannot be pointed at {device} here. Use {', '.join(known)}."
        )
    arguments: dict[str, Any] = {"accelerator": kind.lightning, "devices": [device.index]}
    if kind.host:
        arguments["devices"] = 1
    if kind.lazy:
        start_xla()
        if device.rehearsal:
            arguments["accelerator"] = _rehearsal(package)
        # The strategy's own plugin, named explicitly: without it Darts adds one that it refuses.
        arguments["plugins"] = [package.plugins.io.XLACheckpointIO()]
    return arguments


def _rehearsal(package: ModuleType) -> Any:
    """Return Lightning's accelerator for TPUs, changed to accept XLA's CPU compiler as one."""
    base: Any = package.accelerators.XLAAccelerator

    class XLARehearsal(base):
        is_available = staticmethod(lambda: True)
        auto_device_count = staticmethod(lambda: 1)
        parse_devices = staticmethod(lambda devices: devices)
        get_parallel_devices = staticmethod(lambda devices: [torch.device("xla", 0)])

    with variable_default("PJRT_DEVICE", "CPU"):  # Lightning looks whether it is set
        return XLARehearsal()


def messages_to_stdout() -> None:
    """Send Lightning's messages, without its tips, to stdout; notebooks show stderr as an alarm."""
    for name in ("lightning.pytorch", "lightning.fabric", "pytorch_lightning"):
        for handler in logging.getLogger(name).handlers:
            if isinstance(handler, logging.StreamHandler):
                handler.setStream(sys.stdout)
                handler.addFilter(lambda record: "Tip:" not in record.getMessage())


def calm_lightning() -> None:
    """Turn off Lightning's messages, its advice that does not apply to a small lesson, and what
    newer torch says about Lightning itself.
    """
    for name in ("lightning.pytorch", "lightning.fabric", "pytorch_lightning", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    advice = (
        "does not have many workers",
        "Checkpoint directory .* exists",
        "number of training batches",
        "Trying to infer the `batch_size`",
        r"isinstance\(treespec, LeafSpec\)",
    )
    for message in advice:
        warnings.filterwarnings("ignore", message=f".*{message}")
