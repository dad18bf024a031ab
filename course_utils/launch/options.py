"""What a launch is to do, and what that means for Lightning's Trainer on this machine."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_utils.hardware.machine import usable_cores
from course_utils.launch.causes import START_UP_S
from course_utils.launch.clusters import Cluster
from course_utils.launch.messages import LaunchError

STRATEGIES = ("auto", "ddp_spawn", "ddp", "ddp_notebook", "fsdp")
ACCELERATORS = ("auto", "cpu", "cuda", "gpu", "mps")
PRECISIONS = ("32-true", "bf16-mixed", "16-mixed", "bf16-true", "16-true", "64-true")


def _option(default: Any, text: str, **more: Any) -> Any:
    """Return a field of `Options`, with its help and what else the command line says of it."""
    shown = "" if default is None or default is False else " (default: %(default)s)"
    return field(default=default, metadata={"help": text + shown, **more})


@dataclass(frozen=True)
class Options:
    """What to train, where and how; see `python -m course_utils.launch --help`."""

    lesson: str
    strategy: str = _option(
        "auto", "how the processes start; auto: Lightning chooses", choices=STRATEGIES
    )
    devices: int | str = _option(
        "auto", "devices of each machine, or CPU processes; auto: all GPUs, or one process"
    )
    accelerator: str = _option(
        "auto", "what to train on; auto: the best one here", choices=ACCELERATORS
    )
    num_workers: int | None = _option(
        None, "processes that load data for each rank (default: the lesson's)", type=int
    )
    epochs: int = _option(20, "passes through the data", type=int)
    global_batch: int | None = _option(
        None, "samples in a step of all ranks (default: the lesson's own)", type=int
    )
    precision: str = _option("32-true", "number format", choices=PRECISIONS)
    seed: int = _option(42, "of the weights and the order of the data", type=int)
    out: str = _option("runs/last", "folder for checkpoint, results and log", metavar="DIR")
    resume: bool = _option(
        False, "continue from the checkpoint in --out, if there is one", action="store_true"
    )
    timeout_s: float = _option(
        600.0,
        "end the run when a rank gives no sign of life, or the lesson does not load, for S seconds; a rank that "
        f"is still importing has {START_UP_S:g} seconds, or S if that is more",
        type=float,
        metavar="S",
    )

    def __post_init__(self) -> None:
        least = {"epochs": 1, "global_batch": 1, "num_workers": 0, "seed": 0, "timeout_s": 1}
        for name, smallest in least.items():
            asked = getattr(self, name)
            fits = isinstance(asked, int | float) and smallest <= asked < 2**32
            if not fits and asked is not getattr(Options, name):  # None leaves it to the lesson
                raise LaunchError(
                    f"{name}={asked} was requested, but it must be from {smallest} to {2**32 - 1}."
                )
        if self.devices != "auto" and (not str(self.devices).isdecimal() or int(self.devices) < 1):
            raise LaunchError(
                f"'{self.devices}' is not a number of devices. Write 1, 2, ... or auto."
            )
        if not self.out:
            raise LaunchError("--out '' cannot be used: a folder needs a name.")

    @property
    def checkpoint(self) -> Path:
        """The file to write after each epoch, and to resume from."""
        return Path(self.out) / "checkpoints" / "last.ckpt"


def trainer_arguments(options: Options, cluster: Cluster) -> dict:
    """Return the arguments of Lightning's Trainer that these options stand for.

    Raises:
        LaunchError: a device that was asked for is not in this machine, or two options exclude each
            other.
    """
    accelerator = _find_accelerator(options)
    devices = _count_devices(options, accelerator, cluster)
    together = cluster.nodes * (cluster.devices_per_node or 1) > 1
    strategy = "ddp" if together and options.strategy != "fsdp" else options.strategy
    # On macOS copies of a process crash
    # (https://github.com/Lightning-AI/pytorch-lightning/issues/21345).
    if (accelerator == "mps" and strategy != "auto") or (
        sys.platform == "darwin" and strategy == "ddp_notebook"
    ):
        raise LaunchError(
            f"--strategy {strategy} does not work on {accelerator} on a Mac. Leave --strategy out."
        )
    if accelerator == "cpu" and options.precision in ("16-mixed", "16-true"):
        raise LaunchError(
            f"--precision {options.precision} needs a GPU. On a CPU, choose bf16-mixed or 32-true."
        )
    return {
        "accelerator": accelerator,
        "devices": devices,
        "num_nodes": cluster.nodes,
        "strategy": strategy,
        "precision": options.precision,
        "max_epochs": options.epochs,
        **dict.fromkeys(("enable_progress_bar", "enable_model_summary"), False),
        "default_root_dir": options.out,
    }


def _find_accelerator(options: Options) -> str:
    # is always there: no driver is asked, and torch is not imported
    if options.accelerator == "cpu":
        return "cpu"
    name = {"auto": None, "gpu": "cuda"}.get(options.accelerator, options.accelerator)
    try:
        from course_utils.devices import find_devices, pick_device

        device, found = pick_device(name), find_devices()
    except (ImportError, OSError, MemoryError) as error:
        raise LaunchError(
            f"torch does not load here: {error}. To learn why: python -m course_utils.doctor"
        ) from None
    except (RuntimeError, ValueError) as error:
        why = str(error).replace("Pass None", "Leave --accelerator out")
        raise LaunchError(f"--accelerator {options.accelerator}: {why}") from None
    alike = [one for one in found if one.kind == device.kind]
    by_number = name is None and ":" in os.environ.get("COURSE_DEVICE", "") and len(alike) > 1
    if by_number or device.kind not in ACCELERATORS:
        advice = "Pass --accelerator cpu, or gpu for all that CUDA_VISIBLE_DEVICES leaves. (TPUs: see lesson 4.)"
        raise LaunchError(f"a launch cannot be pointed at '{device}'. {advice}")
    return device.kind


def _count_devices(options: Options, accelerator: str, cluster: Cluster) -> int | None:
    if cluster.kind != "none":
        if str(options.devices) not in ("auto", str(cluster.devices_per_node)):
            started = f"but {cluster.kind} started {cluster.devices_per_node} on this machine ({cluster.found})"
            advice = f"Leave --devices out: {cluster.kind} decides it."
            raise LaunchError(f"--devices {options.devices} was requested, {started}. {advice}")
        return cluster.devices_per_node
    if accelerator == "cpu":
        # Processes on one core only take turns. Four are always allowed, to try it on the smallest
        # machine.
        there, words = (
            max(4, usable_cores()),
            f"a CPU (cores: {usable_cores()}), and the launcher allows",
        )
    else:
        from course_utils.devices import find_devices

        there, words = (
            sum(device.kind == accelerator for device in find_devices()),
            f"{accelerator} devices:",
        )
    wanted = (
        int(options.devices) if options.devices != "auto" else 1 if accelerator == "cpu" else there
    )
    if wanted > there:
        found = f"but this machine has {words} {there}. Ask for {there} or fewer."
        raise LaunchError(f"--devices {wanted} was requested, {found}")
    return wanted


def count_ranks(arguments: dict) -> int:
    """Return how many ranks train together, over all machines, with these arguments of the
    Trainer.
    """
    return arguments["num_nodes"] * arguments["devices"]


def batch_per_rank(global_batch: int, ranks: int) -> int:
    """Return the share of one rank in the samples of a step, or raise LaunchError if they cannot be
    shared evenly.
    """
    if global_batch % ranks:
        advice = f"Pass --global-batch {-(-global_batch // ranks) * ranks}, or another multiple of {ranks}."
        raise LaunchError(
            f"a global batch of {global_batch} cannot be shared evenly by {ranks} ranks. {advice}"
        )
    return global_batch // ranks
