"""Train with Lightning on any device."""

import importlib.util
import logging
import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch import nn

from course_utils.devices import Device, as_device
from course_utils.plain_training import fast_adam
from course_utils.progress_bars import open_bar, show_epoch
from course_utils.xla import (
    import_torch_xla,
    run_recorded,
    start_xla,
    variable_default,
    xla_problem,
)

try:
    import lightning.pytorch as pl
except ModuleNotFoundError:  # Kaggle has the same package under its older name
    import pytorch_lightning as pl  # type: ignore[no-redef]

# Trainer arguments for a training of which only the result matters.
QUIET = dict.fromkeys(
    ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False
)


class Regression(pl.LightningModule):
    """A model with the loss and the optimizer of `train_plain`, for a Lightning Trainer.

    The model maps a batch of inputs to a batch of predictions.
    `train_loss`, the mean over the samples, is logged once an epoch: `self.log` in every step costs
    a tenth of the speed of a model this small.
    """

    loss_fn: Callable[..., torch.Tensor] = staticmethod(nn.functional.mse_loss)

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def on_train_epoch_start(self) -> None:
        """Start to add up the loss."""
        self.total, self.samples = torch.zeros((), device=self.device), 0
        run_recorded(self.device)

    def training_step(
        self, batch: tuple[torch.Tensor, torch.Tensor], batch_index: int
    ) -> torch.Tensor:
        """Return the loss of one batch of (inputs, targets)."""
        inputs, targets = batch
        loss = self.loss_fn(self.model(inputs), targets)
        self.total += loss.detach() * len(inputs)
        self.samples += len(inputs)
        return loss

    def on_train_epoch_end(self) -> None:
        """Log the mean loss of the epoch."""
        self.log("train_loss", self.total / self.samples, sync_dist=True)  # the mean over ranks too

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the same Adam as the plain loop's."""
        return fast_adam(self.parameters(), self.device)


class Classification(Regression):
    """The same for a model that scores classes; targets are the indices of the right ones."""

    loss_fn = staticmethod(nn.functional.cross_entropy)


def trainer_kwargs(
    device: Device | torch.device | str | None = None, *, package: ModuleType = pl
) -> dict[str, Any]:
    """Return the arguments that make a Lightning Trainer use one device.

    Args:
        device: a `Device`, a `torch.device` or its name; None takes what `pick_device` takes.
        package: the Lightning whose Trainer will take them. Darts needs `pytorch_lightning`: it and
            `lightning.pytorch` do not accept each other's objects.

    Returns:
        The arguments to unpack into `Trainer(...)`. On XLA a `precision` beside them has no effect:
        it sets a variable that XLA has read by then.

    Raises:
        ValueError, RuntimeError: as `pick_device` does.
        RuntimeError: torch_xla is here but does not load, or XLA is started too late; see
            `start_xla`.
        NotImplementedError: Lightning has no accelerator for this kind of device.
    """
    device = as_device(device)
    # The first Trainer of a process imports torch_xla to ask it for a TPU, whichever device it will
    # use itself. Import it first, without its side effects.
    if importlib.util.find_spec("torch_xla"):
        try:
            import_torch_xla()
        except ImportError as error:
            raise RuntimeError(
                f"Lightning loads torch_xla for every Trainer, but {xla_problem()}"
            ) from error
    if device.kind == "cpu":
        return {"accelerator": "cpu", "devices": 1}
    if device.kind in ("cuda", "mps"):
        return {"accelerator": device.kind, "devices": [device.index]}
    if device.kind == "xla":
        start_xla()
        accelerator = _rehearsal(package) if device.rehearsal else "tpu"
        # The strategy's own plugin, named explicitly: without it Darts adds one that it refuses.
        saving = package.plugins.io.XLACheckpointIO()
        return {"accelerator": accelerator, "devices": [device.index], "plugins": [saving]}
    raise NotImplementedError(
        f"a Lightning Trainer cannot be pointed at {device} here. Use cpu, cuda, mps or xla."
    )


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
    """Turn off Lightning's messages, and its advice that does not apply to a small lesson."""
    for name in ("lightning.pytorch", "lightning.fabric", "pytorch_lightning", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    advice = (
        "does not have many workers",
        "Checkpoint directory .* exists",
        "number of training batches",
        "Trying to infer the `batch_size`",
    )
    for message in advice:
        warnings.filterwarnings("ignore", message=f".*{message}")


class EpochBar(pl.Callback):
    """One progress bar over all epochs, a widget in a notebook, that keeps the losses it showed.

    The module has to log `train_loss` in each epoch. Lightning's own bar starts anew each epoch and
    is redrawn after each step, which costs a good part of the speed of a model this small.
    """

    def __init__(self) -> None:
        self.losses: list[float] = []  #: `train_loss` of each epoch so far
        self._bar: Any = None

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Open the bar."""
        self.losses = []
        self._bar = open_bar(
            trainer.max_epochs, "epoch", mininterval=0.2, initial=trainer.current_epoch
        )

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Show the epoch before this one, which a module logs only after its callbacks have run."""
        if trainer.current_epoch > self._bar.n:
            self.losses.append(trainer.callback_metrics["train_loss"].item())
            show_epoch(self._bar, trainer.current_epoch, self.losses[-1])

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Show the last epoch and close the bar."""
        self.on_train_epoch_start(trainer, pl_module)
        self._bar.close()

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        """Close the bar if training got far enough to open it."""
        if self._bar is not None:
            self._bar.close()
