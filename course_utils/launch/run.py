"""Start the processes of a training, show what they print, and leave none of them running."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from course_utils.launch.request import LaunchError, Request
from course_utils.launch.result import RunResult
from course_utils.launch.trainings import check_training

REFUSED = 2  # the exit status of a process that refuses the request
# What torchrun or SLURM may have left in this shell: Lightning would wait for their ranks.
FOREIGN = (
    "RANK",
    "LOCAL_",
    "NODE_RANK",
    "GROUP_",
    "WORLD_SIZE",
    "MASTER_",
    "TORCHELASTIC_",
    "SLURM_",
)


class RunError(RuntimeError):
    """A training that failed after it had started: a rank raised an error or was killed."""


def run_lesson(
    lesson: str,
    *,
    strategy: str = "ddp_spawn",
    devices: int | None = None,
    accelerator: str = "auto",
    epochs: int = 20,
    out: str | Path = "runs/last",
    resume: bool = False,
) -> RunResult:
    """Train in processes outside this kernel, and print what they print.

    Args:
        lesson: "path/to/file.py:function" or "package.module:function", which returns a
            LightningModule and its DataLoader. (`%%writefile` writes a cell to such a file.)
        strategy: "ddp_spawn" builds the training once and sends it to the processes; "ddp" builds
            it in each of them.
        devices: how many GPUs or CPU processes; None takes all GPUs, or one CPU process.
        accelerator: "cpu", "gpu", or "auto" for the GPUs if there are any.
        epochs: passes over the data, including those before a resume.
        out: the folder for the checkpoint and the result.
        resume: continue from the checkpoint in `out`, if there is one.

    Raises:
        LaunchError: the request was refused, and nothing was trained.
        RunError: a rank raised an error or was killed.

    Ctrl-C, or the kernel's stop button, ends every process of the run.
    """
    request = Request(lesson, strategy, devices, accelerator, epochs, str(out), resume)
    check_training(lesson)
    _prepare_folder(request)
    training = subprocess.Popen(
        [sys.executable, "-m", "course_utils.launch.train", json.dumps(asdict(request))],
        stdin=subprocess.PIPE,  # closes when this process ends, even if it is killed
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_environment(),
        text=True,
        errors="replace",
        start_new_session=True,  # a group of its own, out of reach of Ctrl-C
    )
    with training:
        threading.Thread(target=_end_leftovers, args=(training,), daemon=True).start()
        try:
            for line in training.stdout or ():
                if "connected peer ranks" not in line:  # Gloo announces each connection
                    print(line, end="", flush=True)
        except BaseException:
            end_group(training.pid)
            raise
    return _outcome(request, training.returncode)


def end_group(group: int) -> None:
    """Ask every process of a group to end, and kill after a second what is left of it.

    multiprocessing's resource tracker ignores the request: it uses the second to remove what the
    others have left in shared memory.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGTERM)
        time.sleep(1)
        os.killpg(group, signal.SIGKILL)


def _prepare_folder(request: Request) -> None:
    """Create the folder, and remove the outcome of an earlier run."""
    try:
        Path(request.out).mkdir(parents=True, exist_ok=True)
        request.error_file.unlink(missing_ok=True)
        request.result_file.unlink(missing_ok=True)
    except OSError as error:
        raise LaunchError(f"the folder {request.out} cannot be used: {error}.") from None


def _environment() -> dict[str, str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
    environment["PYTHONUNBUFFERED"] = "1"
    # When a process is killed, multiprocessing removes its semaphores, and warns that it does.
    kept = os.environ.get("PYTHONWARNINGS", "")
    environment["PYTHONWARNINGS"] = f"{kept},ignore:resource_tracker".removeprefix(",")
    return environment


def _end_leftovers(training: subprocess.Popen) -> None:
    """Wait for the training, and end what has outlived it, which may hold the output open."""
    training.wait()
    end_group(training.pid)


def _outcome(request: Request, status: int) -> RunResult:
    if status == 0 and request.result_file.exists():
        return RunResult.load(request.result_file)
    if request.error_file.exists():
        why = request.error_file.read_text().strip()
    elif status < 0:
        why = f"the process that starts the ranks was killed by {signal.Signals(-status).name}."
    else:
        why = f"the process that starts the ranks ended with status {status}."
    if status == REFUSED:
        raise LaunchError(why)
    if request.checkpoint.exists():
        why += "\nThe last whole checkpoint is kept, and resume continues from it."
    raise RunError(why)
