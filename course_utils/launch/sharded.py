"""Train one lesson with FSDP, where the ranks share parameters, gradients and optimizer state between them.

The launcher starts it for `--strategy fsdp`. Lightning refuses FSDP without a GPU, so this is PyTorch's own
(https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html), with gloo on a CPU and NCCL on GPUs. It calls
what a LightningModule has for training: `training_step`, `configure_optimizers`, and the hooks around an epoch.
"""

import os
import sys
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint import state_dict as states
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method
from torch.utils.data import DistributedSampler

from course_utils.launch.checkpoints import WholeFiles, state_to_resume
from course_utils.launch.clusters import find_cluster
from course_utils.launch.lessons import Lesson, load_lesson
from course_utils.launch.link import Link
from course_utils.launch.messages import LaunchError
from course_utils.launch.options import Options, batch_per_rank, count_ranks
from course_utils.launch.ranks import make_loader, run_main, trained_before
from course_utils.launch.reporting import Report, run_rank
from course_utils.moves import to_device
from course_utils.training import pl

WHOLE = states.StateDictOptions(full_state_dict=True, cpu_offload=True)
PRECISIONS = {"32-true": None, "bf16-mixed": torch.bfloat16}


def fit(options: Options, arguments: dict, link: Link) -> None:
    """Start the ranks of this machine, unless somebody else has, and wait for them.

    Raises:
        LaunchError: the precision, the lesson or the checkpoint is not one that FSDP can train here.
    """
    if options.precision not in PRECISIONS:
        raise LaunchError(f"--strategy fsdp trains in {' or '.join(PRECISIONS)}, but got {options.precision}.")
    lesson, ranks = load_lesson(options.lesson), count_ranks(arguments)
    batch_per_rank(options.global_batch or lesson.global_batch, ranks)
    if not lesson.module.automatic_optimization:
        raise LaunchError(f"the lesson {options.lesson!r} steps its optimizer itself. Choose --strategy ddp.")
    state = state_to_resume(options, lesson.module)
    if state and trained_before(state, options, link):
        return None
    if find_cluster(os.environ).starts_the_ranks:
        return run_rank(link, train, options, arguments, link)
    torch.multiprocessing.spawn(_start, (options, arguments, link), arguments["devices"])


def _start(rank: int, options: Options, arguments: dict, link: Link) -> None:
    # A file in the run's own folder, by which the ranks find each other: no port that could be taken.
    where = {"init_method": f"file://{link.folder}/store", "rank": rank, "world_size": arguments["devices"]}
    os.environ["LOCAL_RANK"] = str(rank)
    run_rank(link, train, options, arguments, link, **where)


def train(options: Options, arguments: dict, link: Link, **where: Any) -> None:
    """Train in one rank from the first step, or from the checkpoint, to the last."""
    on_gpu = arguments["accelerator"] == "cuda"
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo", **where)
    try:
        pl.seed_everything(options.seed, workers=True, verbose=False)
        lesson = load_lesson(options.lesson)
        state = state_to_resume(options, lesson.module)
        module = shard(lesson.module.to(device), PRECISIONS[options.precision])
        _Loop(options, lesson, module, device, link).run(state)
    finally:
        dist.destroy_process_group()


def shard(module: nn.Module, precision: torch.dtype | None = None) -> nn.Module:
    """Share a module's parameters between all ranks, in place, each block of its model and then the rest.

    Args:
        module: the same in every rank.
        precision: to compute in, or None for the parameters' own; they are kept and updated in their own.
    """
    policy = MixedPrecisionPolicy(param_dtype=precision, reduce_dtype=torch.float32 if precision else None)
    for part in module.children():
        for block in part.children():
            if any(True for _ in block.parameters()):
                fully_shard(block, mp_policy=policy)
    fully_shard(module, mp_policy=policy)
    register_fsdp_forward_method(module, "training_step")
    return module


class _Loop:
    """The training in one rank, with the names that `Report` and a LightningModule read of Lightning's Trainer."""

    def __init__(self, options: Options, lesson: Lesson, module: nn.Module, device: torch.device, link: Link):
        self.options, self.module, self.device = options, module, device
        self.report, self.global_rank, self.world_size = Report(link), dist.get_rank(), dist.get_world_size()
        self.is_global_zero, self.max_epochs = self.global_rank == 0, options.epochs
        sampler: Any = DistributedSampler(lesson.dataset, seed=options.seed)
        self.loader = make_loader(lesson, options, self.world_size, sampler)
        self.num_training_batches, self.global_step, self.current_epoch = len(self.loader), 0, 0
        self.callback_metrics: dict[str, float] = {}
        self.interrupted = False  # Lightning's Trainer catches a KeyboardInterrupt; here it ends the rank
        # With a fabric, a module takes `self.log` and `self.trainer` from there.
        module.fabric = module.trainer = self  # type: ignore[assignment]
        found = module.configure_optimizers()  # type: ignore[operator]
        if not isinstance(found, torch.optim.Optimizer):
            raise TypeError(
                f"configure_optimizers returned {type(found).__name__}; with FSDP it returns one optimizer."
            )
        self.optimizer = found

    def run(self, state: dict | None) -> None:
        """Train from the checkpoint's state, or from the beginning."""
        done = self._restore(state) if state else 0
        self.report.setup(self, self, "fit")
        self.report.on_train_start(self, self)
        for epoch in range(done, self.max_epochs):
            self.current_epoch = epoch
            self._epoch(epoch)
            self._save(epoch)
        self.report.on_train_end(self, self)
        self.report.teardown(self, self, "fit")

    def all_gather(self, x: torch.Tensor) -> torch.Tensor:
        """Return the tensor of every rank: (ranks, ...)."""
        parts = [torch.empty_like(x) for _ in range(self.world_size)]
        dist.all_gather(parts, x)
        return torch.stack(parts)

    def log_dict(self, metrics: Mapping[str, Any]) -> None:
        """Keep what the module logs, as this rank sees it."""
        self.callback_metrics |= {name: float(value) for name, value in metrics.items()}

    def _epoch(self, epoch: int) -> None:
        module: Any = self.module
        self.loader.sampler.set_epoch(epoch)  # type: ignore[attr-defined]
        self.report.on_train_epoch_start(self, self)
        module.on_train_epoch_start()
        for index, batch in enumerate(self.loader):
            batch = to_device(batch, self.device)
            self.report.on_train_batch_start(self, self, batch, index)
            result = module.training_step(batch, index)
            loss = result["loss"] if isinstance(result, Mapping) else result
            self.report.on_before_backward(self, self, loss)
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.global_step += 1
            self.report.on_train_batch_end(self, self, loss, batch, index)
        self.report.on_train_epoch_end(self, self)
        module.on_train_epoch_end()

    def _save(self, epoch: int) -> None:
        # Every rank has a share, and rank 0 gets the whole: the file does not say how many there were.
        weights, optimizer = states.get_state_dict(self.module, self.optimizer, options=WHOLE)
        kept = {"epoch": epoch, "global_step": self.global_step, "strategy": "fsdp", "state_dict": weights}
        kept |= {"optimizer_states": [optimizer], "callbacks": {"RankReport": self.report.state_dict()}}
        if self.is_global_zero:
            WholeFiles().save_checkpoint(kept, self.options.checkpoint)
        dist.barrier()  # an error of rank 0 ends the others here

    def _restore(self, state: dict) -> int:
        weights, optimizer = state["state_dict"], state["optimizer_states"][0]
        states.set_model_state_dict(self.module, weights, options=WHOLE)
        if optimizer["state"]:  # plain SGD keeps none, and torch does not load nothing
            states.set_optimizer_state_dict(self.module, self.optimizer, optimizer, options=WHOLE)
        self.report.load_state_dict(state["callbacks"]["RankReport"])
        self.global_step = state["global_step"]
        if self.is_global_zero:
            self.report.link.send(resumed=self.global_step)
        return int(state["epoch"]) + 1


if __name__ == "__main__":
    sys.exit(run_main(fit, *sys.argv[1:]))
