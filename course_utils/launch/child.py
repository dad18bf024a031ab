"""What the launched process does: it starts the ranks, which train, and says how that ended.

`parent.py` starts this file, with its request in a variable. The ranks are processes of
`torch.multiprocessing`. With ddp_spawn Lightning starts them and sends them the training. With ddp
they are started here, and each one builds the training for itself; on Linux they are forked from a
server that has imported PyTorch and Lightning for all of them, and has run nothing else.
"""

import io
import json
import multiprocessing
import os
import re
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import course_utils  # noqa: F401  # this copy, which the launcher is a part of

# After the libraries: files in these folders may have the name of one.
sys.path += [sys.path.pop(0), os.getcwd()]

import torch
from torch.multiprocessing import ProcessExitedException, ProcessRaisedException, start_processes
from torch.utils.data import DataLoader

from course_utils.atomic_write import file_identity
from course_utils.devices import pick_device
from course_utils.hardware.machine import usable_cores
from course_utils.kinds import KINDS
from course_utils.launch.checkpoints import WholeCheckpoints, check_checkpoint
from course_utils.launch.epoch_report import EpochReport
from course_utils.launch.failures import cause_of, find_unpicklable, without_library_frames
from course_utils.launch.processes import REQUEST, end_group, how_it_ended
from course_utils.launch.rendezvous import open_rendezvous
from course_utils.launch.request import LaunchError, Request
from course_utils.lightning import calm_lightning, pl
from course_utils.load_function import NoSuchFunction, load_function

SEED = 42  # of a training without one
# What torch says of a state that does not fit, and `EpochReport` of that of another optimizer.
MISFIT = re.compile(r"in loading state_dict|loaded state dict|state of another optimizer")
REFUSAL = "course_utils.launch.request.LaunchError: "  # in the traceback of a rank


def choose_accelerator(request: Request) -> tuple[str, int]:
    """Return Lightning's name for what to train on, and on how many.

    Raises:
        LaunchError: what was asked for is not in this machine.
    """
    try:
        device = pick_device({"auto": None, "cpu": "cpu", "gpu": "cuda"}[request.accelerator])
    except (RuntimeError, ValueError) as error:
        raise LaunchError(f"accelerator {request.accelerator}: {error}") from None
    forced = os.environ.get("COURSE_DEVICE", "")
    kind = KINDS[device.kind]
    if kind.ddp and not kind.host:
        default = limit = torch.get_device_module(device.kind).device_count()
        accelerator, noun = "gpu", "GPUs"
        if request.accelerator == "auto" and ":" in forced and limit > 1:
            raise LaunchError(
                f"COURSE_DEVICE names {forced}, and a launch takes the first of {limit} GPUs or "
                "all: unset it, and choose by the variable CUDA_VISIBLE_DEVICES."
            )
    else:
        if not kind.host:
            if forced:
                raise LaunchError(f"DDP cannot use {device}, which COURSE_DEVICE names; unset it.")
            print(f"DDP cannot use {device}, so this trains on the CPU.")
        # Four are allowed everywhere, so that every machine can try it.
        default, limit = 1, max(4, usable_cores())
        accelerator, noun = "cpu", "CPU processes"
    wanted = request.count or default
    if wanted > limit:
        raise LaunchError(f"{wanted} {noun} were requested, but this machine allows {limit}.")
    return accelerator, wanted


def load_training(name: str) -> tuple[Any, Any]:
    """Return the LightningModule and the DataLoader of a training.

    Raises:
        LaunchError: there is no such training, or it returns something else.
    """
    try:
        make = load_function(name)
    except NoSuchFunction as error:
        raise LaunchError(str(error)) from None
    returned = make()
    parts = returned if isinstance(returned, tuple) else (returned,)
    wanted = (pl.LightningModule, DataLoader)
    if len(parts) != 2 or not all(map(isinstance, parts, wanted)):
        kinds = ", ".join(type(part).__name__ for part in parts)
        raise LaunchError(f"{name} returned {kinds}, not a LightningModule and its DataLoader.")
    return parts


def leave_torch_xla_out() -> None:
    """Keep Lightning from importing torch_xla, unless the training has imported it.

    Its first Trainer would do so to ask for a TPU, on which nothing is launched, and that takes six
    seconds of a core in each rank.
    """
    sys.modules.setdefault("torch_xla", None)  # type: ignore[arg-type]


def fit(request: Request, accelerator: str, count: int) -> None:
    """Build the training and run it, from the checkpoint if that was requested."""
    calm_lightning()
    pl.seed_everything(SEED if request.seed is None else request.seed, workers=True, verbose=False)
    module, loader = load_training(request.training)
    leave_torch_xla_out()
    # without a seed in the request, one that the training has set itself counts
    seed = torch.initial_seed() % 2**32 if request.seed is None else request.seed
    trainer = pl.Trainer(
        accelerator=accelerator,
        devices=count,
        strategy=request.strategy,
        use_distributed_sampler=count > 1,  # a single rank keeps the loader's own
        max_epochs=request.epochs,
        default_root_dir=request.out,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[EpochReport(request, accelerator, seed)],
        plugins=[WholeCheckpoints(request)],
    )
    resumes = request.resume and request.checkpoint.exists()
    try:
        trainer.fit(module, loader, ckpt_path=str(request.checkpoint) if resumes else None)
    except (AttributeError, TypeError, ValueError) as error:  # what pickle raises
        parts = {"module": module, "loader": loader}
        for name, part in parts.items() if request.spawns else ():
            if culprit := find_unpicklable(part, name):
                raise LaunchError(
                    f"{culprit} cannot be sent to the ranks ({error}). Take strategy ddp, which "
                    "builds the training in each of them, or make it in the module's `setup`."
                ) from None
        raise


def fit_as_rank(rank: int, request: Request, accelerator: str, count: int) -> None:
    """Train as one rank of ddp: Lightning finds its rank in the variable LOCAL_RANK."""
    if sys.platform == "linux":
        # Python would ask the server for the workers of a loader, which knows no class of theirs.
        multiprocessing.set_start_method("fork", force=True)  # as in a rank of torchrun
    os.environ["LOCAL_RANK"] = str(rank)
    fit(request, accelerator, count)


def train(request: Request) -> None:
    """Train in as many processes as there are devices; raises what torch raises of a rank."""
    accelerator, count = choose_accelerator(request)
    check_checkpoint(request)
    _store, variables = open_rendezvous()  # held until the ranks have ended
    os.environ.update(variables)
    if request.resume and not request.checkpoint.exists():
        print(f"there is no checkpoint in {request.out}, so this begins with epoch 1")
    ranks = "1 rank" if count == 1 else f"{count} ranks"
    print(f"training {request.training} with {ranks} on {accelerator}")
    if request.spawns:
        fit(request, accelerator, count)
    else:
        # macOS may stop a process that was forked after its system libraries were loaded.
        method = "forkserver" if sys.platform == "linux" else "spawn"
        arguments = (request, accelerator, count)
        start_processes(fit_as_rank, arguments, nprocs=count, start_method=method)


def does_not_fit(request: Request, cause: str) -> str:
    """Say so if a resumed training failed because it was edited; else return nothing."""
    if not (request.resume and MISFIT.search(cause)):
        return ""
    return (
        f"{request.training} has another network or optimizer than {request.checkpoint}: {cause} "
        "Take back the change, or choose another folder."
    )


def try_to_train(request: Request) -> tuple[str, bool]:
    """Train, and return why that failed, or nothing, and whether it was refused."""
    result_before = file_identity(request.result_file)
    try:
        train(request)
    except LaunchError as error:
        return str(error), True
    except ProcessRaisedException as error:
        cause = cause_of(error.msg)
        if cause.startswith(REFUSAL):
            return cause.removeprefix(REFUSAL), True
        if why := does_not_fit(request, cause):
            return why, True
        print(without_library_frames(error.msg))
        return f"rank {error.error_index} raised {cause}", False
    except ProcessExitedException as error:
        return f"rank {error.error_index} {how_it_ended(error.exit_code)}", False
    except SystemExit as error:
        return f"{request.training} called sys.exit({error.code!r}).", False
    except Exception:
        text = traceback.format_exc()
        if why := does_not_fit(request, cause_of(text)):
            return why, True
        print(without_library_frames(text))
        return f"{request.training} raised {cause_of(text)}", False
    if file_identity(request.result_file) not in (None, result_before):
        return "", False
    return (
        f"{request.training} made no step: its loader has no batch for a rank. Use smaller "
        "batches, fewer ranks, or a loader without drop_last.",
        False,
    )


def end_when_asked(number: int, report: int) -> None:
    """End every process of this group, after a signal to this one."""
    for each in (signal.SIGTERM, signal.SIGINT):  # end_group sends one to this process too
        signal.signal(each, lambda *_: None)
    why = f"the process that starts the ranks was ended by {signal.Signals(number).name}."
    send(report, why, False)
    end_group(os.getpgrp())


def end_with_the_launcher() -> None:
    """Wait until the launcher has ended, even if it was killed, then end this group of processes.

    The launcher holds the other end of the pipe, and never writes to it.
    """
    os.read(0, 1)
    end_group(os.getpgrp())


def send(report: int, why: str, refused: bool) -> None:
    """Tell the launcher why this training failed; a pipe works on a full disk too."""
    os.write(report, json.dumps({"why": why[:2000], "refused": refused}).encode())


def main() -> int:
    """Train, report why that failed, and return the exit status."""
    report = int(sys.argv.pop())  # the training reads arguments of its own from a clean list
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: end_when_asked(number, report))
    threading.Thread(target=end_with_the_launcher, daemon=True).start()
    sys.stdin = io.StringIO()  # empty, for a training that asks for input
    why, refused = try_to_train(Request(**json.loads(os.environ[REQUEST])))
    if why:
        send(report, why, refused)
    return 1 if why else 0


if __name__ == "__mp_main__":  # imported under this name by a spawned rank, and by the server
    calm_lightning()
    asked = Request(**json.loads(os.environ[REQUEST]))
    if asked.spawns:
        load_function(asked.training)  # what is sent is made of the classes in its file
        leave_torch_xla_out()
if __name__ == "__main__":
    sys.exit(main())
