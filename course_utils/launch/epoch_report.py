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

PATIENCE_S = 60.0


class EpochReport(pl.callbacks.Checkpoint):
    """Prints a line and saves a checkpoint after each epoch, and writes the result at the end.

    A `Checkpoint` has its turn after the module, which logs its loss at the end of an epoch.
    """

    def __init__(self, request: Request, accelerator: str, seed: int):
        self.request, self.accelerator, self.seed = request, accelerator, seed
        self.losses: list[float] = []
        self.first_epoch = self.batches = 0
        self.start_s = 0.0
        self.ended = False

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint keeps."""
        return {"losses": self.losses, "seed": self.request.seed}

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
        seed_all(self.seed, self.first_epoch)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Start the clock, and let SIGTERM end this rank at once.

        Lightning would finish the batch first, and wait for ranks that may have ended.
        """
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for each in trainer.optimizers:
            if missing := each.defaults.keys() - each.param_groups[0].keys():
                raise ValueError(f"state of another optimizer: it has no {min(missing)}")
        self.start_s = time.monotonic()
        if trainer.world_size > 1:
            name = f"rank {trainer.global_rank}"
            watch = threading.Thread(target=say_when_waiting, args=(name, self._begun), daemon=True)
            watch.start()

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Seed every later epoch, so that a resumed run draws the numbers of an unbroken one."""
        if trainer.current_epoch > self.first_epoch:
            seed_all(self.seed, trainer.current_epoch)

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """Count the batches, and give each rank numbers of its own once the order is drawn.

        The order of the samples is the same in all ranks, which share it out. Dropout is not.
        """
        self.batches += 1
        if batch_idx == 0:
            seed_all(self.seed, trainer.current_epoch, trainer.global_rank + 1)

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
            print(line)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Write the result, unless there was no batch to train on."""
        self.ended = True
        if not trainer.is_global_zero or not self.batches:
            return
        result = RunResult(
            training=self.request.training,
            strategy=self.request.strategy,
            accelerator=self.accelerator,
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
            say(f"{rank} has begun {now} batches, and none in the last minute. {_why(now)}")
            said = now
        before = now


def _why(batches: int) -> str:
    if batches == 0:
        return "It may still prepare its data, or wait for another rank that does or has an error."
    return (
        "Ranks wait for each other in every batch, and for ever where one has fewer batches than "
        "another: give each rank equally many."
    )


def seed_all(*parts: int) -> None:
    """Seed every generator of random numbers from these numbers.

    Not by seed_everything: it also sets the seed by which Lightning shuffles all epochs.
    """
    number = int(numpy.random.SeedSequence(parts).generate_state(1)[0])
    for seed in (random.seed, numpy.random.seed, torch.manual_seed):
        seed(number)
