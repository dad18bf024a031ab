"""What a rank does after each epoch: save, report, and begin the next one like any other run."""

import random
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy
import torch

from course_utils.launch.request import Request
from course_utils.launch.result import RunResult
from course_utils.lightning import pl

SEED = 42
PATIENCE_S = 60.0


class EpochReport(pl.callbacks.Checkpoint):
    """Prints a line and saves a checkpoint after each epoch, and writes the result at the end.

    A `Checkpoint` has its turn after the module, which logs its loss at the end of an epoch.
    """

    def __init__(self, request: Request, accelerator: str):
        self.request, self.accelerator = request, accelerator
        self.losses: list[float] = []
        self.first_epoch = self.batches = 0
        self.start_s = 0.0
        self.ended = False

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint keeps."""
        return {"losses": self.losses}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.losses = state_dict["losses"]

    def on_load_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Remember the epoch that a resumed run begins with."""
        self.first_epoch = checkpoint["epoch"] + 1

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Seed the first epoch, before Lightning asks the loader for it."""
        _seed_epoch(self.first_epoch)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Start the clock, and let SIGTERM end this rank at once.

        Lightning would finish the batch first, and wait for ranks that may have ended.
        """
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self.start_s = time.monotonic()
        if trainer.world_size > 1:
            name = f"rank {trainer.global_rank}"
            watch = threading.Thread(target=say_when_waiting, args=(name, self._begun), daemon=True)
            watch.start()

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Seed every later epoch, so that a resumed run draws the numbers of an unbroken one."""
        if trainer.current_epoch > self.first_epoch:
            _seed_epoch(trainer.current_epoch)

    def on_train_batch_start(self, *_: Any) -> None:
        """Count the batches."""
        self.batches += 1

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Save a checkpoint and print the loss, if the module has logged a `train_loss`."""
        if not self.batches:
            return
        line = f"epoch {trainer.current_epoch + 1}/{self.request.epochs}"
        if "train_loss" in trainer.callback_metrics:
            self.losses.append(trainer.callback_metrics["train_loss"].item())
            line += f": train_loss {self.losses[-1]:.4g}"
        trainer.save_checkpoint(self.request.checkpoint)
        if trainer.is_global_zero:
            print(line, flush=True)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Write the result, unless there was no batch to train on."""
        self.ended = True
        if not trainer.is_global_zero or not self.batches:
            return
        result = RunResult(
            lesson=self.request.lesson,
            strategy=self.request.strategy,
            device=self.accelerator,
            ranks=trainer.world_size,
            losses=self.losses,
            train_s=time.monotonic() - self.start_s,
            checkpoint=str(self.request.checkpoint),
        )
        result.save(self.request.result_file)

    def _begun(self) -> int | None:
        return None if self.ended else self.batches


def say_when_waiting(
    rank: str,
    batches_begun: Callable[[], int | None],
    sleep: Callable[[float], None] = time.sleep,
    say: Callable[[str], None] = print,
) -> None:
    """Say once, each time that a rank begins no more batches, that it waits.

    Args:
        rank: its name.
        batches_begun: returns how many batches the rank has begun, and None when it has ended.
    """
    before, said = batches_begun(), None
    while before is not None:
        sleep(PATIENCE_S)
        now = batches_begun()
        if now is not None and now == before != said:
            say(
                f"{rank} has begun {now} batches, and none in the last minute. Ranks wait for "
                "each other in every batch, and for ever where one has fewer batches than another: "
                "give each rank equally many.",
            )
            said = now
        before = now


def _seed_epoch(epoch: int) -> None:
    # Not seed_everything: it also sets the seed by which Lightning shuffles all epochs.
    for seed in (random.seed, numpy.random.seed, torch.manual_seed):
        seed(SEED + epoch)
