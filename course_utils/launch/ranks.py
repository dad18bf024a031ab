"""Train one lesson, in a process that only the launcher starts: `python -m course_utils.launch.ranks ...`.

Lightning starts the ranks from there. With ddp_spawn each of them imports this file again, as `__mp_main__`.
"""

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from torch.multiprocessing import ProcessExitedException, ProcessRaisedException
from torch.utils.data import DataLoader, DistributedSampler

from course_utils.launch.checkpoints import WholeFiles, state_to_resume
from course_utils.launch.lessons import Lesson, load_lesson
from course_utils.launch.link import Link
from course_utils.launch.messages import LaunchError, calm_lightning, short_traceback
from course_utils.launch.options import Options, batch_per_rank, count_ranks
from course_utils.launch.reporting import Report, ReportingDDP, run_rank
from course_utils.training import pl

START_METHODS = {"ddp": "popen", "ddp_spawn": "spawn", "ddp_notebook": "fork"}  # as Lightning names them


def make_loader(lesson: Lesson, options: Options, ranks: int, sampler: Any = None) -> DataLoader:
    """Return a loader of one rank's batches; Lightning will give it the sampler that picks the samples of a rank.

    A single process gets that sampler too: the order of an epoch then depends on the seed and the number of the epoch
    alone, so that one device sees the batches that several see together, and so does a resumed run.
    """
    if ranks == 1 and sampler is None:
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


def trained_before(state: dict, options: Options, link: Link) -> bool:
    """Say whether a checkpoint has all the epochs that were asked for, and report what it holds if so."""
    epochs = state["epoch"] + 1
    if epochs >= options.epochs:
        results = {"losses": state["callbacks"]["RankReport"]["losses"], "steps": state["global_step"]}
        link.send(already=epochs, done=results)
    return bool(epochs >= options.epochs)


def fit(options: Options, arguments: dict, link: Link) -> None:
    """Train a lesson with these options and arguments of the Trainer, from the last checkpoint if so wished.

    The launcher has looked for devices; this process does not, since a process that did may not be forked for CUDA.
    """
    calm_lightning()
    pl.seed_everything(options.seed, workers=True, verbose=False)
    link.send(loading=os.getpid())
    lesson = load_lesson(options.lesson)
    link.send(loaded=os.getpid())
    state = state_to_resume(options, lesson.module)
    if state and trained_before(state, options, link):
        return
    if state:
        link.send(resumed=state["global_step"])
    trainer = _make_trainer(options, arguments, link)
    loader = make_loader(lesson, options, count_ranks(arguments))
    # Without a launcher of Lightning's, this process is the rank.
    run = trainer.fit if trainer.strategy.launcher else partial(run_rank, link, trainer.fit)
    run(lesson.module, loader, ckpt_path=str(options.checkpoint) if state else None)


def _make_trainer(options: Options, arguments: dict, link: Link) -> pl.Trainer:
    strategy, on_tpu = arguments["strategy"], arguments["accelerator"] == "tpu"
    if strategy == "auto" and count_ranks(arguments) > 1 and not on_tpu:
        strategy = "ddp"  # what Lightning takes then
    if strategy in START_METHODS:
        strategy = ReportingDDP(link, start_method=START_METHODS[strategy])
    saving = pl.callbacks.ModelCheckpoint(options.checkpoint.parent, "last", enable_version_counter=False)
    arguments = {**arguments, "strategy": strategy, "callbacks": [Report(link), saving], "plugins": [WholeFiles()]}
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
