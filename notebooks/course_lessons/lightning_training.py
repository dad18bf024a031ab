"""Train with Lightning as the plain loop does: a module, and one bar over all epochs."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from course_lessons.fast_adam import fast_adam
from course_lessons.progress_bars import open_bar, show_epoch
from course_utils.lightning import pl
from course_utils.xla import run_recorded


class Regression(pl.LightningModule):
    """A model that lowers the mean squared error with Adam, for a Lightning Trainer.

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
