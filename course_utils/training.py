"""Train: the plain PyTorch loop, and the same in Lightning on any device."""

import logging
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import contextmanager

import torch
from torch import nn

from course_utils.devices import Device, pick_device

try:
    import lightning.pytorch as pl
except ModuleNotFoundError:  # Kaggle has the same package under its older name
    import pytorch_lightning as pl


def train_plain(
    model: nn.Module,
    inputs: torch.Tensor,
    targets: torch.Tensor,
    *,
    batches: Iterable[torch.Tensor],
    epochs: int,
    learning_rate: float = 1e-3,
    loss_fn: Callable = nn.functional.mse_loss,
    on_epoch: Callable[[int, float], None] | None = None,
) -> list[float]:
    """Train in place with Adam in a plain loop, on the device where the model and the data already are.

    Args:
        model: maps a batch of inputs to a batch of predictions.
        inputs: (samples, ...).
        targets: (samples, ...), what the predictions are compared with.
        batches: yields the sample indices of each batch, anew for every epoch; see `ShuffledBatches`.
        epochs: how often to go through all samples.
        learning_rate: Adam's.
        loss_fn: maps predictions and targets to the mean loss of the batch.
        on_epoch: called with the number of the finished epoch, from 1, and its loss.

    Returns:
        The mean loss over the samples for each epoch, measured while the model was learning.
    """
    # fused: one call updates all parameters; the default makes several calls for each of them.
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, fused=True)
    losses = []
    for epoch in range(1, epochs + 1):
        total = torch.zeros((), device=inputs.device)  # stays on the device: reading it would wait for each step
        for index in batches:
            loss = loss_fn(model(inputs[index]), targets[index])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            total += loss.detach() * len(index)
        losses.append(total.item() / len(inputs))
        if on_epoch:
            on_epoch(epoch, losses[-1])
    return losses


class Regression(pl.LightningModule):
    """A model with the loss and the optimizer of `train_plain`, for a Lightning Trainer.

    It logs `train_loss`, the mean over the samples, once an epoch: `self.log` in every step costs a tenth of the
    speed of a model this small.

    Args:
        model: maps a batch of inputs to a batch of predictions.
        learning_rate: Adam's.
    """

    def __init__(self, model: nn.Module, learning_rate: float = 1e-3):
        super().__init__()
        self.model, self.learning_rate = model, learning_rate

    def on_train_epoch_start(self):
        """Start to add up the loss."""
        self.total, self.samples = torch.zeros((), device=self.device), 0

    def training_step(self, batch, batch_index):
        """Return the loss of one batch of (inputs, targets)."""
        inputs, targets = batch
        loss = nn.functional.mse_loss(self.model(inputs), targets)
        self.total += loss.detach() * len(inputs)
        self.samples += len(inputs)
        return loss

    def on_train_epoch_end(self):
        """Log the mean loss of the epoch."""
        self.log("train_loss", self.total / self.samples, sync_dist=True)  # the mean over ranks too

    def configure_optimizers(self):
        """Return the same Adam as the plain loop's."""
        return torch.optim.Adam(self.parameters(), lr=self.learning_rate, fused=True)


def trainer_kwargs(device: Device | str | None = None) -> dict:
    """Return the arguments that make a Lightning Trainer use one device.

    Args:
        device: a `Device` or its name; None takes what `pick_device` takes.

    Returns:
        The arguments to unpack into `Trainer(...)`.

    Raises:
        ValueError, RuntimeError: as `pick_device` does.
        NotImplementedError: Lightning has no accelerator for this kind of device.
    """
    device = device if isinstance(device, Device) else pick_device(device)
    _ask_lightning_for_xla()
    if device.kind == "cpu":
        return {"accelerator": "cpu", "devices": 1}
    if device.kind in ("cuda", "mps"):
        return {"accelerator": device.kind, "devices": [device.index]}
    raise NotImplementedError(f"a Lightning Trainer cannot be pointed at {device} here. Use 'cpu', 'cuda' or 'mps'.")


def _ask_lightning_for_xla() -> None:
    # The first Trainer of a process asks torch_xla for a TPU. Without one, torch_xla then warns on stderr and sets
    # PJRT_DEVICE for the rest of the process. Lightning remembers the answer, so ask once with nothing to choose.
    with _variable("PJRT_SELECT_DEFAULT_DEVICE", "0"):
        pl.accelerators.XLAAccelerator.is_available()


@contextmanager
def _variable(name: str, value: str):
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def messages_to_stdout() -> None:
    """Send Lightning's messages to stdout, without its advertisements.

    They go to stderr by default, which a notebook shows as an alarm.
    """
    for name in ("lightning.pytorch", "lightning.fabric", "pytorch_lightning"):
        for handler in logging.getLogger(name).handlers:
            if isinstance(handler, logging.StreamHandler):
                handler.setStream(sys.stdout)
                handler.addFilter(_is_no_tip)


def _is_no_tip(record: logging.LogRecord) -> bool:
    return "Tip:" not in record.getMessage()


class EpochBar(pl.Callback):
    """One progress bar over all epochs, a widget in a notebook, that keeps the losses it showed.

    Lightning's own bar starts anew each epoch and is redrawn after each step, which costs a good part of the speed
    of a model this small.

    Attributes:
        losses: `train_loss` of each epoch so far.
    """

    def on_train_start(self, trainer, pl_module):
        """Open the bar."""
        self.losses: list[float] = []
        self._bar = _open_bar(trainer.max_epochs)

    def on_train_epoch_start(self, trainer, pl_module):
        """Show the epoch before this one: a module logs its epoch after the callbacks have had theirs."""
        if trainer.current_epoch > len(self.losses):
            self._show(trainer)

    def on_train_end(self, trainer, pl_module):
        """Show the last epoch and close the bar."""
        self._show(trainer)
        self._bar.close()

    def on_exception(self, trainer, pl_module, exception):
        """Close the bar where it stands."""
        self._bar.close()

    def _show(self, trainer) -> None:
        self.losses.append(trainer.callback_metrics["train_loss"].item())
        _advance(self._bar, len(self.losses), self.losses[-1])


def epoch_bar(epochs: int) -> Callable[[int, float], None]:
    """Return what `train_plain` takes as `on_epoch` to show one progress bar over all epochs."""
    bar = _open_bar(epochs)
    return lambda epoch, loss: _advance(bar, epoch, loss)


def _open_bar(epochs: int):
    from tqdm.auto import tqdm

    return tqdm(total=epochs, unit="epoch", mininterval=0.2)


def _advance(bar, epoch: int, loss: float) -> None:
    bar.set_postfix_str(f"loss {loss:.4f}", refresh=False)
    bar.update(epoch - bar.n)
    if epoch == bar.total:
        bar.close()
