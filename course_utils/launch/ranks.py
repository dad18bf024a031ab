"""Train one lesson, in a process that only the launcher starts: `python -m course_utils.launch.ranks ...`.

Lightning starts the ranks from there. With ddp_spawn each of them imports this file again, as `__mp_main__`.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.multiprocessing import ProcessExitedException, ProcessRaisedException
from torch.utils.data import DataLoader, DistributedSampler

from course_utils.launch.checkpoints import WholeFiles, read_checkpoint
from course_utils.launch.clusters import find_cluster
from course_utils.launch.lessons import Lesson, load_lesson
from course_utils.launch.link import Link
from course_utils.launch.messages import LaunchError, calm_lightning, is_out_of_memory, short_traceback
from course_utils.launch.options import CHECKPOINT, Options, batch_per_rank, count_ranks
from course_utils.training import pl

INTERRUPTED = "KeyboardInterrupt: a person or another program sent it SIGINT"
START_METHODS = {"ddp": "popen", "ddp_spawn": "spawn", "ddp_notebook": "fork"}  # as Lightning names them


def run_rank(link: Link, function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Run a function in one rank, connected to the supervisor, which is told of an exception in this very rank."""
    cluster = find_cluster(os.environ)
    local_rank = int(os.environ.get("SLURM_LOCALID" if cluster.kind == "slurm" else "LOCAL_RANK", 0))
    rank = cluster.rank if cluster.starts_the_ranks else local_rank
    link.open(rank=rank)
    calm_lightning()
    try:
        return function(*args, **kwargs)
    except KeyboardInterrupt:  # no key: the ranks are not the terminal's
        link.send(fault=INTERRUPTED, error=INTERRUPTED, rank=rank)
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        link.send(fault=short_traceback(error), error=said, rank=rank)
        if link.asked and is_out_of_memory(said):
            from course_utils.launch.out_of_memory import memory_note  # costs a second that other runs do not need

            link.send(memory=memory_note(*link.asked))
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
        return super().launcher and _Launcher(super().launcher, self.link)


class _Launcher:
    def __init__(self, launcher: Any, link: Link):
        self._launcher, self._link = launcher, link

    def launch(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        return self._launcher.launch(partial(run_rank, self._link, function), *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._launcher, name)


class _Report(pl.Callback):
    """Sends heartbeats in every step of a rank, adds up its loss and its samples, and reports each epoch."""

    state_key = "RankReport"

    def __init__(self, link: Link):
        self.link = link
        self.losses: list[float] = []  # the mean over the samples of all ranks, for each epoch since the first run

    def state_dict(self):
        return {"losses": self.losses}

    def load_state_dict(self, state_dict):
        self.losses = list(state_dict["losses"])

    def setup(self, trainer, pl_module, stage):
        self.link.open(rank=trainer.global_rank)  # however it was started

    def on_train_start(self, trainer, pl_module):
        # Lightning's own answer to SIGTERM waits for the end of a step, which never comes for a rank that hangs.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._start_s, self._samples_per_s = time.monotonic(), 0.0
        self._beat(trainer, "it waits for a batch, for the next epoch, or for other ranks")
        if trainer.is_global_zero:
            steps = trainer.num_training_batches * trainer.max_epochs
            self.link.send(start={"steps": steps, "done": trainer.global_step, "epochs": trainer.max_epochs})

    def on_train_epoch_start(self, trainer, pl_module):
        # float32 counts samples exactly up to 16 million a rank; MPS and TPUs have nothing wider.
        self._sums = torch.zeros(2, device=pl_module.device)  # loss times samples, samples
        self._epoch_start_s = time.monotonic()

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self._beat(trainer, "it has its batch, and has not finished the forward pass")

    def on_before_backward(self, trainer, pl_module, loss):
        where = "it has finished the forward pass, and waits in the backward pass for its device or for other ranks"
        self._beat(trainer, where)

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self._beat(trainer, "it waits for a batch, for the next epoch, or for other ranks")
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        while not isinstance(batch, torch.Tensor):
            batch = next(iter(batch.values() if isinstance(batch, dict) else batch))
        if isinstance(loss, torch.Tensor):
            samples = loss.new_tensor(len(batch), dtype=torch.float)
            self._sums += torch.stack([loss.detach().float() * samples, samples])

    def on_train_epoch_end(self, trainer, pl_module):
        sums = pl_module.all_gather(self._sums).reshape(-1, 2)  # (ranks, 2)
        self._samples = [int(count) for count in sums[:, 1]]  # int() waits for the device
        speed = sum(self._samples) / (time.monotonic() - self._epoch_start_s)
        self._samples_per_s = max(self._samples_per_s, speed)
        self.losses.append((sums[:, 0].sum() / sums[:, 1].sum()).item())
        if trainer.is_global_zero:
            self.link.send(epoch=len(self.losses), loss=self.losses[-1])

    def on_train_end(self, trainer, pl_module):
        if trainer.is_global_zero:
            results = {"losses": self.losses, "steps": trainer.global_step, "samples_per_rank": self._samples}
            results["metrics"] = {name: float(value) for name, value in trainer.callback_metrics.items()}
            results |= {"samples_per_s": self._samples_per_s, "train_s": time.monotonic() - self._start_s}
            self.link.send(done=results)

    def teardown(self, trainer, pl_module, stage):
        if not trainer.interrupted:
            self.link.send(finished=True)  # and the checkpoint is written

    def _beat(self, trainer, where: str) -> None:
        self.link.send(step=trainer.global_step, where=where)


def make_loader(lesson: Lesson, options: Options, ranks: int) -> DataLoader:
    """Return a loader of one rank's batches; Lightning will give it the sampler that picks the samples of a rank.

    A single process gets that sampler too: the order of an epoch then depends on the seed and the number of the epoch
    alone, so that one device sees the batches that several see together, and so does a resumed run.
    """
    return DataLoader(
        lesson.dataset,
        batch_size=batch_per_rank(options.global_batch or lesson.global_batch, ranks),
        shuffle=ranks > 1,
        sampler=DistributedSampler(lesson.dataset, 1, 0, seed=options.seed) if ranks == 1 else None,
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
    link.send(loading=os.getpid())
    lesson = load_lesson(options.lesson)
    link.send(loaded=os.getpid())
    checkpoint = Path(options.out) / CHECKPOINT
    resumed = options.resume and os.path.lexists(checkpoint)
    if resumed:
        state = read_checkpoint(checkpoint, lesson.module)
        if state["epoch"] + 1 >= options.epochs:
            results = {"losses": state["callbacks"]["RankReport"]["losses"], "steps": state["global_step"]}
            return link.send(already=state["epoch"] + 1, done=results)
        link.send(resumed=state["global_step"])
    trainer = _make_trainer(arguments, link, checkpoint)
    loader = make_loader(lesson, options, count_ranks(arguments))
    # Without a launcher of Lightning's, this process is the rank.
    run = trainer.fit if trainer.strategy.launcher else partial(run_rank, link, trainer.fit)
    run(lesson.module, loader, ckpt_path=str(checkpoint) if resumed else None)


def _make_trainer(arguments: dict, link: Link, checkpoint: Path) -> pl.Trainer:
    strategy, on_tpu = arguments["strategy"], arguments["accelerator"] == "tpu"
    if strategy == "auto" and count_ranks(arguments) > 1 and not on_tpu:
        strategy = "ddp"  # what Lightning takes then
    if strategy in START_METHODS:
        strategy = ReportingDDP(link, start_method=START_METHODS[strategy])
    saving = pl.callbacks.ModelCheckpoint(checkpoint.parent, "last", enable_version_counter=False)
    arguments = {**arguments, "strategy": strategy, "callbacks": [_Report(link), saving], "plugins": [WholeFiles()]}
    # Lightning imports torch_xla to count TPUs, whatever it trains on, which takes seconds. None in its place says
    # that it is not there (https://docs.python.org/3/reference/import.html#the-module-cache).
    absent = not on_tpu and sys.modules.setdefault("torch_xla", None) is None  # type: ignore[arg-type]
    try:
        return pl.Trainer(**arguments)
    finally:
        if absent:
            del sys.modules["torch_xla"]


def run_main(train: Callable[[Options, dict, Link], None], options: str, arguments: str, folder: str) -> int:
    """Train, tell the supervisor what went wrong if anything did, and return the exit status."""
    link = Link(folder)
    link.open()
    link.asked = Options(**json.loads(options)), json.loads(arguments)
    try:
        train(link.asked[0], link.asked[1], link)
    except LaunchError as error:
        link.send(refusal=str(error))
    except ProcessExitedException as error:  # a spawned rank that ended without raising anything
        link.send(died=error.error_index, status=error.exit_code)
    except ProcessRaisedException as error:  # the rank has reported it, unless it failed before it was connected
        text = str(error).strip()
        link.send(fault=text, error=text.splitlines()[-1], rank=error.error_index, indirect=True)
    except Exception as error:
        link.send(fault=short_traceback(error), error=f"{type(error).__name__}: {error}", rank=None, indirect=True)
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(run_main(fit, *sys.argv[1:]))
