"""Train one lesson, in a process that only the launcher starts: `python -m
course_utils.launch.ranks`.

Lightning starts the ranks from there. With ddp_spawn each of them imports this file again, as
`__mp_main__`.
"""

import json
import os
import sys
from contextlib import suppress
from functools import partial

from torch.multiprocessing import ProcessExitedException, ProcessRaisedException
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler

from course_utils.launch.checkpoints import WholeFiles, read_checkpoint
from course_utils.launch.lessons import load_lesson
from course_utils.launch.link import REQUEST, Link
from course_utils.launch.messages import LaunchError, calm_lightning, short_traceback
from course_utils.launch.options import Options, batch_per_rank, count_ranks
from course_utils.launch.reporting import ReportingDDP, _Report, run_rank
from course_utils.lightning import pl

# as Lightning names them
START_METHODS = {"ddp": "popen", "ddp_spawn": "spawn", "ddp_notebook": "fork"}


class _Saving(pl.callbacks.ModelCheckpoint):
    """Saves for --resume. A lesson's own ModelCheckpoint would take the place of one of the same
    class.
    """


def make_loader(loader: DataLoader, options: Options, ranks: int) -> DataLoader:
    """Return a loader of one rank's batches; Lightning will give it the sampler that picks the
    samples of a rank.

    A single process gets that sampler too: the order of an epoch then depends on the seed and the
    number of the epoch alone, so that one device sees the batches that several see together, and so
    does a resumed run.
    """
    # `load_lesson` saw to it
    batch_size = batch_per_rank(options.global_batch or loader.batch_size or 1, ranks)
    share, drawn = -(-len(loader.dataset) // ranks), type(loader.sampler) is RandomSampler  # type: ignore[arg-type]
    if loader.drop_last and share < batch_size:
        why = f"drop_last leaves out every batch: a rank has {share} samples, and a batch needs {batch_size}"
        raise LaunchError(
            f"there is nothing to train on, since the lesson's {why}. Pass a smaller --global-batch."
        )
    workers = loader.num_workers if options.num_workers is None else options.num_workers
    kept = ["collate_fn", "drop_last", "pin_memory", "worker_init_fn"]
    # which a loader without refuses
    kept += ["multiprocessing_context", "prefetch_factor", "timeout"] * (workers > 0)
    return DataLoader(
        loader.dataset,
        batch_size=batch_size,
        shuffle=drawn and ranks > 1,
        sampler=DistributedSampler(loader.dataset, 1, 0, drawn, options.seed)
        if ranks == 1
        else None,
        num_workers=workers,
        persistent_workers=workers > 0,
        **{name: getattr(loader, name) for name in kept},
    )


def fit(options: Options, arguments: dict, link: Link) -> None:
    """Train a lesson with these options and arguments of the Trainer, from the last checkpoint if
    so wished.

    The launcher has looked for devices; this process does not, since a process that did may not be
    forked for CUDA.
    """
    calm_lightning()
    pl.seed_everything(options.seed, workers=True, verbose=False)
    link.send(loading=True)
    module, data = load_lesson(options.lesson)
    link.send(loading=False)
    trainer = _make_trainer(options, arguments, link, module)
    resumes = options.resume and os.path.lexists(options.checkpoint)
    state = (
        read_checkpoint(options.checkpoint, module, trainer.fit_loop.state_dict())
        if resumes
        else None
    )
    if state and state["epoch"] + 1 >= options.epochs:
        results = {
            "losses": state["callbacks"]["RankReport"]["losses"],
            "steps": state["global_step"],
        }
        link.send(
            note=f"all {state['epoch'] + 1} epochs were trained before: nothing to do", done=results
        )
        return link.send(finished=True)
    if state:
        link.send(resumed=state["global_step"])
        kept = f"{options.out}/metrics-to-step-{state['global_step']}.csv"
        with suppress(OSError):  # the logger begins a new file; of several ranks, one is the first
            if not os.path.exists(kept):  # else only what is trained again is lost
                os.replace(f"{options.out}/metrics.csv", kept)
    loader = make_loader(data, options, count_ranks(arguments))
    trainer.log_every_n_steps = min(50, -(-len(loader) // count_ranks(arguments)))  # type: ignore[attr-defined]
    # Without a launcher of Lightning's, this process is the rank.
    run = trainer.fit if trainer.strategy.launcher else partial(run_rank, link, trainer.fit)
    run(module, loader, ckpt_path=str(options.checkpoint) if state else None)


def _make_trainer(
    options: Options, arguments: dict, link: Link, module: pl.LightningModule
) -> pl.Trainer:
    strategy = arguments["strategy"]
    if strategy == "auto" and count_ranks(arguments) > 1:
        strategy = "ddp"  # what Lightning takes then
    if strategy in START_METHODS:
        # a GAN, for instance, trains one part of itself at a time
        alone = not module.automatic_optimization
        strategy = ReportingDDP(
            link, start_method=START_METHODS[strategy], find_unused_parameters=alone
        )
    elif strategy == "fsdp":
        # costs time that others do not need
        from course_utils.launch.sharded import ReportingFSDP, make_sharded

        make_sharded(module, options.precision, arguments["accelerator"])
        parts: dict = {"data_parallel_size": count_ranks(arguments), "tensor_parallel_size": 1}
        strategy = ReportingFSDP(link, save_distributed_checkpoint=False, **parts)
        arguments = {**arguments, "precision": "32-true"}  # FSDP itself computes in another
    saving = _Saving(options.checkpoint.parent, "last", enable_version_counter=False)
    arguments = {
        **arguments,
        "strategy": strategy,
        "callbacks": [_Report(link), saving],
        "plugins": [WholeFiles()],
    }
    arguments["logger"] = pl.loggers.CSVLogger(options.out, "", "")
    # Lightning imports torch_xla to count TPUs, whatever it trains on, which takes seconds. None in
    # its place says that it is not there
    # (https://docs.python.org/3/reference/import.html#the-module-cache).
    absent = sys.modules.setdefault("torch_xla", None) is None  # type: ignore[arg-type]
    try:
        return pl.Trainer(**arguments)
    finally:
        if absent:
            del sys.modules["torch_xla"]


def main() -> int:
    """Train, tell the supervisor what went wrong if anything did, and return the exit status."""
    options, arguments, folder = json.loads(os.environ[REQUEST])
    link = Link(folder, asked := (Options(**options), arguments))
    link.open()
    try:
        fit(*asked, link)
    except LaunchError as error:
        link.send(refusal=str(error))
    except ProcessExitedException as error:  # a spawned rank that ended without raising anything
        link.send(died=error.error_index, status=error.exit_code)
    except (
        ProcessRaisedException
    ) as error:  # the rank has reported it, unless it failed before it was connected
        text = str(error).strip()
        link.send(fault=text, error=text.splitlines()[-1], rank=error.error_index)
    except Exception as error:
        link.send(fault=short_traceback(error), error=f"{type(error).__name__}: {error}")
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
