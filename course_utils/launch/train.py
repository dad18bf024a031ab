"""Train in several processes: `python -m course_utils.launch.train REQUEST`.

The launcher starts it. Its ranks are processes of `torch.multiprocessing`: with ddp_spawn Lightning
starts them and sends them the training; with ddp they are started here, and each one builds the
training for itself.
"""

import importlib.util
import io
import json
import os
import re
import signal
import sys
import threading
import time
import traceback
from typing import Any, TextIO

import torch
from torch.distributed.elastic.utils.distributed import get_free_port
from torch.multiprocessing import ProcessExitedException, ProcessRaisedException, spawn

from course_utils.devices import find_devices, pick_device
from course_utils.hardware.machine import usable_cores
from course_utils.launch.request import LaunchError, Request
from course_utils.launch.result import RunResult
from course_utils.launch.run import REFUSED, end_group
from course_utils.launch.trainings import load_training
from course_utils.lightning import calm_lightning, pl
from course_utils.xla import import_torch_xla

SEED = 42


class AtomicCheckpoints(pl.plugins.TorchCheckpointIO):
    """Replaces a checkpoint in one step, so that an interrupted write leaves the old one."""

    def save_checkpoint(self, checkpoint: Any, path: Any, storage_options: Any = None) -> None:
        """Write the checkpoint beside its place, then move it there."""
        part = f"{path}.part"
        torch.save(checkpoint, part)
        os.replace(part, path)

    def load_checkpoint(self, path: Any, *_: Any, **__: Any) -> Any:
        """Read a checkpoint without running any code that it may contain."""
        return torch.load(path, map_location="cpu", weights_only=True)


class EpochReport(pl.callbacks.Checkpoint):
    """Prints a line and saves a checkpoint after each epoch, and writes the result at the end.

    A `Checkpoint` has its turn after the module, which logs its loss at the end of an epoch.
    """

    def __init__(self, request: Request, accelerator: str):
        self.request, self.accelerator = request, accelerator
        self.losses: list[float] = []
        self.start_s = 0.0

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint keeps."""
        return {"losses": self.losses}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.losses = state_dict["losses"]

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Start the clock, and let SIGTERM end this rank at once.

        Lightning would finish the batch first, and wait for ranks that may have ended.
        """
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self.start_s = time.monotonic()

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Save a checkpoint and print the loss, if the module has logged a `train_loss`."""
        line = f"epoch {trainer.current_epoch + 1}/{self.request.epochs}"
        if "train_loss" in trainer.callback_metrics:
            self.losses.append(trainer.callback_metrics["train_loss"].item())
            line += f": train_loss {self.losses[-1]:.4g}"
        trainer.save_checkpoint(self.request.checkpoint)
        if trainer.is_global_zero:
            print(line, flush=True)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Write the result."""
        if not trainer.is_global_zero:
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


def choose_devices(request: Request) -> tuple[str, int]:
    """Return Lightning's name for what to train on, and on how many.

    Raises:
        LaunchError: what was asked for is not in this machine.
    """
    try:
        device = pick_device({"auto": None, "cpu": "cpu", "gpu": "cuda"}[request.accelerator])
    except (RuntimeError, ValueError) as error:
        raise LaunchError(f"accelerator {request.accelerator}: {error}") from None
    if device.kind not in ("cuda", "cpu"):
        raise LaunchError(f"the launcher does not train on {device}: ask for accelerator cpu.")
    if device.kind == "cuda":
        here = sum(found.kind == "cuda" for found in find_devices())
        accelerator, default, limit, noun = "gpu", here, here, "GPUs"
    else:
        # Four are allowed everywhere, so that every machine can try it.
        limit = max(4, usable_cores())
        accelerator, default, noun = "cpu", 1, "CPU processes"
    wanted = request.devices or default
    if wanted > limit:
        raise LaunchError(f"{wanted} {noun} were requested, but this machine allows {limit}.")
    return accelerator, wanted


def check_checkpoint(request: Request) -> None:
    """Raise LaunchError if the checkpoint to resume from cannot be read, or is complete."""
    if not request.resume or not request.checkpoint.exists():
        return
    try:
        epochs = torch.load(request.checkpoint, map_location="cpu", weights_only=True)["epoch"] + 1
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise LaunchError(
            f"{request.checkpoint} is not a whole checkpoint ({reason}). Start without resume."
        ) from None
    if epochs >= request.epochs:
        raise LaunchError(
            f"{request.out} has been trained for {epochs} epochs already; ask for more epochs."
        )


def fit(request: Request, accelerator: str, devices: int) -> None:
    """Build the training and run it, from the checkpoint if that was requested."""
    calm_lightning()
    if importlib.util.find_spec("torch_xla"):
        import_torch_xla()  # every Trainer imports it, and this way it prints nothing
    pl.seed_everything(SEED, workers=True, verbose=False)
    module, loader = load_training(request.lesson)
    trainer = pl.Trainer(
        accelerator=accelerator,
        devices=devices,
        strategy=request.strategy,
        max_epochs=request.epochs,
        default_root_dir=request.out,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[EpochReport(request, accelerator)],
        plugins=[AtomicCheckpoints()],
    )
    resumes = request.resume and request.checkpoint.exists()
    trainer.fit(module, loader, ckpt_path=str(request.checkpoint) if resumes else None)


def fit_as_rank(rank: int, request: Request, accelerator: str, devices: int) -> None:
    """Train as one rank of ddp: Lightning finds its rank in the variable LOCAL_RANK."""
    os.environ["LOCAL_RANK"] = str(rank)
    fit(request, accelerator, devices)


def train(request: Request) -> None:
    """Train in as many processes as there are devices; raises what torch raises of a rank."""
    accelerator, devices = choose_devices(request)
    check_checkpoint(request)
    ranks = "1 rank" if devices == 1 else f"{devices} ranks"
    print(f"training {request.lesson} with {ranks} on {accelerator}", flush=True)
    if request.strategy == "ddp_spawn":
        fit(request, accelerator, devices)
    else:
        os.environ["MASTER_ADDR"] = "127.0.0.1"
        os.environ["MASTER_PORT"] = str(get_free_port())
        spawn(fit_as_rank, (request, accelerator, devices), nprocs=devices)


def without_library_frames(text: str) -> str:
    """Return a traceback without the calls inside torch and Lightning, which are most of it."""
    library = re.compile(r'  File ".*-packages/(torch|lightning|pytorch_lightning)/')
    kept, inside = [], False
    for line in text.strip().splitlines():
        if line.startswith("  File "):
            inside = bool(library.match(line))
        elif not line.startswith("    "):
            inside = False
        if not inside:
            kept.append(line)
    return "\n".join([*kept, "(The calls inside torch and Lightning are left out.)"])


def end_with_the_launcher(pipe: TextIO) -> None:
    """Wait until the launcher has ended, even if it was killed, then end this group of processes.

    The launcher holds the other end of the pipe, and never writes to it.
    """
    pipe.read()
    end_group(os.getpgrp())


def main() -> int:
    """Train, leave the reason in the error file where that fails, and return the exit status."""
    # A handler, since a signal that is ignored here would also be ignored by the ranks.
    signal.signal(signal.SIGTERM, lambda *_: None)
    threading.Thread(target=end_with_the_launcher, args=(sys.stdin,), daemon=True).start()
    sys.stdin = io.StringIO()  # empty, for a training that asks for input
    request = Request(**json.loads(sys.argv[1]))
    try:
        train(request)
        return 0
    except LaunchError as error:
        request.error_file.write_text(str(error))
        return REFUSED
    except ProcessRaisedException as error:
        print(without_library_frames(error.msg), flush=True)
        last_line = error.msg.strip().splitlines()[-1]
        why = f"rank {error.error_index} raised {last_line}"
    except ProcessExitedException as error:
        how = f"was killed by {error.signal_name}"
        if not error.signal_name:
            how = f"ended with status {error.exit_code}"
        why = f"rank {error.error_index} {how}."
    except Exception as error:
        print(without_library_frames(traceback.format_exc()), flush=True)
        why = f"{request.lesson} raised {type(error).__name__}: {error}"
    request.error_file.write_text(why)
    return 1


if __name__ == "__mp_main__":  # a spawned rank imports this file under this name
    calm_lightning()
if __name__ == "__main__":
    sys.exit(main())
