"""What a rank tells the supervisor: that it lives, how far it is, what it has learned, and what
went wrong.
"""

import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from course_utils.launch.link import Link
from course_utils.launch.messages import OUT_OF_MEMORY, calm_lightning, short_traceback
from course_utils.lightning import pl

MOST_SAID = 20_000  # characters of a traceback that are reported


def run_rank(link: Link, function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Run a function in one rank, connected to the supervisor, which is told of an exception in
    this very rank.
    """
    link.open("rank 0")
    calm_lightning()
    try:
        return function(*args, **kwargs)
    except SystemExit:  # its status says enough
        raise
    except BaseException as error:
        # The ranks are not the terminal's, so no key was pressed.
        why = (
            "a person or another program sent it SIGINT"
            if isinstance(error, KeyboardInterrupt)
            else error
        )
        said = f"{type(error).__name__}: {why}"
        said = said if len(said) < 600 else f"{said[:300]}\n{said[-300:]}"
        link.send(fault=short_traceback(error)[-MOST_SAID:], error=said)
        if link.asked and OUT_OF_MEMORY.search(said):
            # costs a second that other runs do not need
            from course_utils.launch.out_of_memory import memory_note

            link.send(memory=memory_note(*link.asked))
        raise


class Reporting:
    """A strategy of Lightning's in which every rank reports its own exceptions.

    A callback's `on_exception` would not do: Lightning calls it in the process that called `fit`.
    With ddp_spawn that is no rank, and of several ranks that failed it knows only one, not always
    the first.
    """

    def __init__(self, link: Link, **keywords: Any):
        super().__init__(**keywords)
        self.link = link

    @property
    def launcher(self) -> Any:
        """Lightning's own launcher, which is given `run_rank` to start in each rank."""
        launcher = super().launcher  # type: ignore[misc]
        return launcher and _Launcher(launcher, self.link)


class ReportingDDP(Reporting, pl.strategies.DDPStrategy):
    """DDP in which every rank reports its own exceptions."""


class _Launcher:
    def __init__(self, launcher: Any, link: Link):
        self._launcher, self._link = launcher, link

    def launch(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        return self._launcher.launch(partial(run_rank, self._link, function), *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._launcher, name)


class _Report(pl.Callback):
    """Sends heartbeats in every step of a rank, adds up its loss and its samples, and reports each
    epoch.
    """

    state_key = "RankReport"

    def __init__(self, link: Link):
        self.link = link
        # The mean over the samples of all ranks, for each epoch since the first run; None where no
        # step returned one.
        self.losses: list[float | None] = []

    def state_dict(self):
        return {"losses": self.losses}

    def load_state_dict(self, state_dict):
        self.losses = list(state_dict["losses"])

    def on_train_start(self, trainer, pl_module):
        # Lightning's own answer to SIGTERM waits for the end of a step, which never comes for a
        # rank that hangs.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._start_s, self._samples_per_s = time.monotonic(), 0.0
        self._beat(trainer, "it waits for a batch, for the next epoch, or for other ranks")
        if trainer.is_global_zero:
            steps = trainer.num_training_batches * trainer.max_epochs * len(trainer.optimizers)
            self.link.send(
                start={"steps": steps, "done": trainer.global_step, "epochs": trainer.max_epochs}
            )

    def on_train_epoch_start(self, trainer, pl_module):
        # float32 counts samples exactly up to 16 million a rank; MPS has nothing wider.
        # samples, those with a loss, loss times samples
        self._sums = torch.zeros(3, device=pl_module.device)
        self._epoch_start_s, self._batches = time.monotonic(), 0

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self._beat(trainer, "it has its batch, and has not finished the forward pass")

    def on_before_backward(self, trainer, pl_module, loss):
        where = "it has finished the forward pass, and waits in the backward pass for its device or for other ranks"
        self._beat(trainer, where)

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self._beat(trainer, "it waits for a batch, for the next epoch, or for other ranks")
        self._batches = batch_idx + 1
        loader = trainer.train_dataloader  # the batch itself may be of any class
        samples = min(len(loader.sampler) - batch_idx * loader.batch_size, loader.batch_size)
        self._sums[0] += samples
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        if isinstance(loss, torch.Tensor):
            self._sums[1] += samples
            self._sums[2] += loss.detach().float() * samples

    def on_validation_batch_start(self, trainer, pl_module, batch, batch_idx, dataloader_idx=0):
        self._beat(trainer, "it validates, or waits for other ranks after that")

    def on_train_epoch_end(self, trainer, pl_module):
        sums = pl_module.all_gather(self._sums).reshape(-1, 3)  # (ranks, 3)
        self._samples = [int(count) for count in sums[:, 0]]  # int() waits for the device
        self._samples_per_s = max(
            self._samples_per_s, sum(self._samples) / (time.monotonic() - self._epoch_start_s)
        )
        _, known, total = sums.sum(0).tolist()
        self.losses.append(total / known if known else None)
        if trainer.is_global_zero:
            if self._batches < trainer.num_training_batches and not trainer.should_stop:
                ended = f"epoch {len(self.losses)} ended after batch {self._batches} of {trainer.num_training_batches}"
                self.link.send(
                    note=f"{ended}: a step or the data raised StopIteration, or a hook returned -1"
                )
            self.link.send(epoch=len(self.losses), loss=self.losses[-1])

    def on_train_end(self, trainer, pl_module):
        if trainer.is_global_zero:
            results = {
                "losses": self.losses,
                "steps": trainer.global_step,
                "samples_per_rank": self._samples,
            }
            results["metrics"] = {
                name: float(value) for name, value in trainer.callback_metrics.items()
            }
            results |= {
                "samples_per_s": self._samples_per_s,
                "train_s": time.monotonic() - self._start_s,
            }
            if trainer.current_epoch < trainer.max_epochs:  # EarlyStopping, for instance
                self.link.send(
                    note=f"the lesson has ended the training early, after epoch {trainer.current_epoch}"
                )
            self.link.send(done=results)

    def teardown(self, trainer, pl_module, stage):
        if not trainer.interrupted:
            self.link.send(finished=True)  # and the checkpoint is written

    def _beat(self, trainer, where: str) -> None:
        self.link.send(step=trainer.global_step, where=where)
