"""Train one lesson in the process at hand and in the ranks that Lightning starts from it."""

import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, DistributedSampler

from course_utils.launch.checkpoints import WholeFiles, read_checkpoint
from course_utils.launch.clusters import find_cluster
from course_utils.launch.lessons import Lesson, load_lesson
from course_utils.launch.link import Heartbeat, Heartbeats, Link
from course_utils.launch.options import Options, batch_per_rank, count_ranks
from course_utils.launch.readable import calm_lightning, short_traceback
from course_utils.training import pl

START_METHODS = {"ddp": "popen", "ddp_spawn": "spawn", "ddp_notebook": "fork"}  # as Lightning names them


def run_rank(link: Link, function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Run a function in one rank, connected to the supervisor, which is told of an exception in this very rank."""
    cluster = find_cluster(os.environ)
    local_rank = int(os.environ.get("SLURM_LOCALID" if cluster.kind == "slurm" else "LOCAL_RANK", 0))
    rank = cluster.rank if cluster.starts_the_ranks else local_rank
    link.open(rank=rank, local_rank=local_rank)
    calm_lightning()
    try:
        return function(*args, **kwargs)
    except Exception as error:
        link.send(fault=short_traceback(error), error=f"{type(error).__name__}: {error}", rank=rank)
        raise


class ReportingDDP(pl.strategies.DDPStrategy):
    """DDP in which every rank reports its own exceptions.

    A callback's `on_exception` would not do: Lightning calls it in the process that called `fit`. With ddp_spawn that
    is no rank, and of several ranks that failed it knows only one, not always the first.
    """

    def __init__(self, link: Link, **keywords: Any):
        super().__init__(**keywords)
        self.link = link

    @property
    def launcher(self) -> Any:
        """Lightning's own launcher, which is given `run_rank` to start in each rank."""
        return super().launcher and ReportingLauncher(super().launcher, self.link)


class ReportingLauncher:
    """A launcher of Lightning that starts functions through `run_rank`."""

    def __init__(self, launcher: Any, link: Link):
        self._launcher, self._link = launcher, link

    def launch(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """Start the function in every rank."""
        return self._launcher.launch(partial(run_rank, self._link, function), *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._launcher, name)


class RankReport(pl.Callback):
    """Sends a heartbeat in every step of a rank, adds up its loss and its samples, and reports each epoch.

    Attributes:
        losses: the mean loss over the samples of all ranks, for each epoch so far, also of the runs resumed from.
    """

    def __init__(self, link: Link):
        self.link, self.losses = link, []

    def state_dict(self):
        """Return what a resumed run needs: the losses of the epochs before."""
        return {"losses": self.losses}

    def load_state_dict(self, state_dict):
        """Take up the losses of the epochs before."""
        self.losses = list(state_dict["losses"])

    def setup(self, trainer, pl_module, stage):
        """Connect the rank, however it was started."""
        self.link.open(rank=trainer.global_rank, local_rank=trainer.local_rank)

    def on_train_start(self, trainer, pl_module):
        """Send the first heartbeat, and how long the training is."""
        # Lightning's own answer to SIGTERM waits for the end of a step, which never comes for a rank that hangs.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._heartbeats, self._count, self._start_s = Heartbeats(self.link.folder), 0, time.monotonic()
        self._samples_per_s = 0.0
        self._beat(trainer, 1)
        if trainer.is_global_zero:
            steps = trainer.num_training_batches * trainer.max_epochs
            self.link.send(start={"steps": steps, "done": trainer.global_step, "epochs": trainer.max_epochs})

    def on_train_epoch_start(self, trainer, pl_module):
        """Start to add up."""
        # float32 counts samples exactly up to 16 million a rank; MPS and TPUs have nothing wider.
        self._sums = torch.zeros(2, device=pl_module.device)  # loss times samples, samples
        self._epoch_start_s = time.monotonic()

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        """Send a heartbeat: the batch is here."""
        self._beat(trainer, 2)

    def on_before_backward(self, trainer, pl_module, loss):
        """Send a heartbeat: the forward pass is done; what follows waits for the other ranks."""
        self._beat(trainer, 3)

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        """Send a heartbeat and add up."""
        self._beat(trainer, 1)
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        samples = _samples_in(batch)
        if isinstance(loss, torch.Tensor):
            self._sums += torch.stack([loss.detach().float() * samples, loss.new_tensor(samples, dtype=torch.float)])

    def on_train_epoch_end(self, trainer, pl_module):
        """Put the sums of all ranks together."""
        sums = pl_module.all_gather(self._sums).reshape(-1, 2)  # (ranks, 2)
        self._samples = [int(count) for count in sums[:, 1]]  # int() waits for the device
        self._samples_per_s = sum(self._samples) / (time.monotonic() - self._epoch_start_s)
        self.losses.append((sums[:, 0].sum() / sums[:, 1].sum()).item())
        if trainer.is_global_zero:
            self.link.send(epoch=len(self.losses), loss=self.losses[-1])

    def on_train_end(self, trainer, pl_module):
        """Send the results."""
        if trainer.is_global_zero:
            results = {
                "losses": self.losses,
                "metrics": {name: float(value) for name, value in trainer.callback_metrics.items()},
                "steps": trainer.global_step,
                "samples_per_rank": self._samples,
                "samples_per_s": self._samples_per_s,
                "train_s": time.monotonic() - self._start_s,
            }
            self.link.send(done=results)

    def teardown(self, trainer, pl_module, stage):
        """Say that this rank has trained to the end, and that the checkpoint is written."""
        self.link.send(finished=True)

    def _beat(self, trainer, phase: int) -> None:
        self._count += 1
        self._heartbeats.write(trainer.local_rank, Heartbeat(self._count, trainer.global_step, time.monotonic(), phase))


def _samples_in(batch: Any) -> int:
    while not isinstance(batch, torch.Tensor):
        batch = next(iter(batch.values() if isinstance(batch, dict) else batch))
    return len(batch)


def _earlier_results(state: dict) -> dict:
    losses = state.get("callbacks", {}).get("RankReport", {}).get("losses", [])
    nothing_new = {"metrics": {}, "samples_per_rank": [], "samples_per_s": 0.0, "train_s": 0.0}
    return {"losses": losses, "steps": state["global_step"], **nothing_new}


def make_loader(lesson: Lesson, options: Options, ranks: int) -> DataLoader:
    """Return a loader of one rank's batches; Lightning will give it the sampler that picks the samples of a rank.

    A single process gets that sampler too, for one rank: the order of an epoch then depends on the seed and the
    number of the epoch alone, so that one device sees the batches that several see together, and so does a resumed
    run.
    """
    sampler: DistributedSampler | None = None
    if ranks == 1:
        sampler = DistributedSampler(lesson.dataset, 1, 0, seed=options.seed)
    return DataLoader(
        lesson.dataset,
        batch_size=batch_per_rank(options.global_batch or lesson.global_batch, ranks),
        shuffle=sampler is None,
        sampler=sampler,
        num_workers=options.num_workers,
        persistent_workers=options.num_workers > 0,
        collate_fn=lesson.collate,
    )


def fit(options: Options, arguments: dict, link: Link) -> None:
    """Train a lesson with these options and arguments of the Trainer, from the last checkpoint if so wished.

    The launcher has looked for devices; this process does not, since a process that did may not be forked for CUDA.
    """
    calm_lightning()
    pl.seed_everything(options.seed, workers=True, verbose=False)
    lesson = load_lesson(options.lesson)
    checkpoint = Path(options.out) / "checkpoints" / "last.ckpt"
    resumed = options.resume and os.path.lexists(checkpoint)
    if resumed:
        state = read_checkpoint(checkpoint, lesson.module)
        if state["epoch"] + 1 >= options.epochs:
            return link.send(already=state["epoch"] + 1, done=_earlier_results(state))
        link.send(resumed=state["global_step"])
    trainer = _make_trainer(arguments, link, checkpoint)
    loader = make_loader(lesson, options, count_ranks(arguments))
    # Without a launcher of Lightning's, this process is the rank.
    run = trainer.fit if trainer.strategy.launcher else partial(run_rank, link, trainer.fit)
    run(lesson.module, loader, ckpt_path=str(checkpoint) if resumed else None)


def _make_trainer(arguments: dict, link: Link, checkpoint: Path) -> pl.Trainer:
    ranks, strategy = count_ranks(arguments), arguments["strategy"]
    if strategy == "auto" and ranks > 1 and arguments["accelerator"] != "tpu":
        strategy = "ddp"  # what Lightning takes then
    if strategy in START_METHODS:
        strategy = ReportingDDP(link, start_method=START_METHODS[strategy])
    # Lightning imports torch_xla to count TPUs, whatever it trains on, which takes seconds. None in its place says
    # that it is not there (https://docs.python.org/3/reference/import.html#the-module-cache).
    absent = arguments["accelerator"] != "tpu" and sys.modules.setdefault("torch_xla", None) is None
    try:
        saving = pl.callbacks.ModelCheckpoint(checkpoint.parent, "last", enable_version_counter=False)
        callbacks = [RankReport(link), saving]
        return pl.Trainer(**{**arguments, "strategy": strategy}, callbacks=callbacks, plugins=[WholeFiles()])
    finally:
        if absent:
            del sys.modules["torch_xla"]
