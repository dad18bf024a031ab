"""Train one lesson in the process at hand and in the ranks that Lightning starts from it."""

import logging
import os
import signal
import sys
import time
import warnings
from pathlib import Path

import torch
from torch.utils.data import DataLoader, DistributedSampler

from course_utils.launch.checkpoints import WholeFiles, read_checkpoint
from course_utils.launch.clusters import find_cluster
from course_utils.launch.hiding import without
from course_utils.launch.lessons import Lesson, load_lesson
from course_utils.launch.options import Options, batch_per_rank, count_ranks
from course_utils.launch.rank_link import Link, Mark, Marks
from course_utils.launch.tracebacks import short_traceback
from course_utils.training import pl


class RankTrainer(pl.Trainer):
    """A Trainer whose every rank opens a line to the supervisor, and tells it what went wrong in this very rank.

    Lightning calls `on_exception` in the process that called `fit`. With ddp_spawn that is no rank, and of several
    ranks that failed it knows only one, not always the first.
    """

    def __init__(self, link: Link, **arguments):
        super().__init__(**arguments)
        self.link = link

    def _fit_impl(self, *args, **kwargs):
        # The outermost function that runs inside of every rank, whatever the strategy.
        cluster = find_cluster(os.environ)
        local_rank = int(os.environ.get("SLURM_LOCALID" if cluster.kind == "slurm" else "LOCAL_RANK", 0))
        rank = cluster.rank if cluster.starts_the_ranks else local_rank
        self.link.open(rank=rank, local_rank=local_rank)
        calm_lightning()
        try:
            return super()._fit_impl(*args, **kwargs)
        except Exception as error:
            self.link.tell(fault=short_traceback(error), error=f"{type(error).__name__}: {error}", rank=rank)
            raise


class RankReport(pl.Callback):
    """Marks every step of a rank, adds up its loss and its samples, and tells the supervisor of each epoch.

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

    def on_train_start(self, trainer, pl_module):
        """Prepare the marks and tell how long the training is."""
        # Lightning's own answer to SIGTERM waits for the end of a step, which never comes for a rank that hangs.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._marks, self._count, self._start = Marks(self.link.folder), 0, time.monotonic()
        self._samples_per_s = 0.0
        self._mark(trainer, 1)
        if trainer.is_global_zero:
            steps = trainer.num_training_batches * trainer.max_epochs
            self.link.tell(start={"steps": steps, "done": trainer.global_step, "epochs": trainer.max_epochs})

    def on_train_epoch_start(self, trainer, pl_module):
        """Start to add up."""
        # float32 counts samples exactly up to 16 million a rank; MPS and TPUs have nothing wider.
        self._sums = torch.zeros(2, device=pl_module.device)  # loss times samples, samples
        self._epoch_start = time.monotonic()

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        """Give a sign of life: the batch is here."""
        self._mark(trainer, 2)

    def on_before_backward(self, trainer, pl_module, loss):
        """Give a sign of life: the forward pass is done; what follows waits for the other ranks."""
        self._mark(trainer, 3)

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        """Give a sign of life and add up."""
        self._mark(trainer, 1)
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        samples = _samples_in(batch)
        if isinstance(loss, torch.Tensor):
            self._sums += torch.stack([loss.detach().float() * samples, loss.new_tensor(samples, dtype=torch.float)])

    def on_train_epoch_end(self, trainer, pl_module):
        """Put the sums of all ranks together."""
        sums = pl_module.all_gather(self._sums).reshape(-1, 2)  # (ranks, 2)
        self._samples = [int(count) for count in sums[:, 1]]
        self._samples_per_s = sum(self._samples) / (
            time.monotonic() - self._epoch_start
        )  # int() has waited for the device
        self.losses.append((sums[:, 0].sum() / sums[:, 1].sum()).item())
        if trainer.is_global_zero:
            self.link.tell(epoch=len(self.losses), loss=self.losses[-1])

    def on_train_end(self, trainer, pl_module):
        """Tell the results."""
        if trainer.is_global_zero:
            metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
            self.link.tell(
                done={
                    "losses": self.losses,
                    "metrics": metrics,
                    "steps": trainer.global_step,
                    "samples_per_rank": self._samples,
                    "samples_per_s": self._samples_per_s,
                    "train_s": time.monotonic() - self._start,
                }
            )

    def _mark(self, trainer, phase: int) -> None:
        self._count += 1
        self._marks.write(trainer.local_rank, Mark(self._count, trainer.global_step, time.time(), phase))


def _samples_in(batch) -> int:
    while not isinstance(batch, torch.Tensor):
        batch = next(iter(batch.values() if isinstance(batch, dict) else batch))
    return len(batch)


def _results(state: dict) -> dict:
    losses = state["callbacks"].get("RankReport", {}).get("losses", [])
    nothing_new = {"metrics": {}, "samples_per_rank": [], "samples_per_s": 0.0, "train_s": 0.0}
    return {"losses": losses, "steps": state["global_step"], **nothing_new}


def calm_lightning() -> None:
    """Keep Lightning's advertisements and the advice that does not apply to a lesson out of the output."""
    for name in ("lightning.pytorch", "lightning.fabric", "pytorch_lightning", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for message in ("does not have many workers", "directory .* exists and is not empty", "number of training batches"):
        warnings.filterwarnings("ignore", message=f".*{message}")


def make_loader(lesson: Lesson, options: Options, ranks: int) -> DataLoader:
    """Return a loader of one rank's batches; Lightning will give it the sampler that picks the samples of a rank.

    A single process gets that sampler too, for one rank: the order of an epoch then depends on the seed and the
    number of the epoch alone, so that one device sees the batches that several see together, and so does a resumed
    run.
    """
    sampler = DistributedSampler(lesson.dataset, 1, 0, seed=options.seed) if ranks == 1 else None
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
    resumed = options.resume and checkpoint.exists()
    if resumed:
        state = read_checkpoint(checkpoint, lesson.module)
        if state["epoch"] + 1 >= options.epochs:
            return link.tell(already=state["epoch"] + 1, done=_results(state))
        link.tell(resumed=state["global_step"])
    # A lesson that has made a Trainer of its own has loaded torch_xla: half hidden, it would confuse Lightning.
    wanted = arguments["accelerator"] == "tpu" or "torch_xla" in sys.modules
    with without() if wanted else without("torch_xla"):
        trainer = RankTrainer(
            link,
            callbacks=[
                RankReport(link),
                pl.callbacks.ModelCheckpoint(checkpoint.parent, "last", enable_version_counter=False),
            ],
            plugins=[WholeFiles()],
            **arguments,
        )
    loader = make_loader(lesson, options, count_ranks(arguments))
    trainer.fit(lesson.module, loader, ckpt_path=str(checkpoint) if resumed else None)
