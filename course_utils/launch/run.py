"""Start the processes of a training, show what they print, and leave none of them running."""

import json
import os
import signal
import subprocess
import sys
import threading
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
    out: str | Path = "runs/notebook",
    resume: bool = False,
) -> RunResult:
    """Train in processes outside this kernel, and print what they print.

    Args:
        lesson: "air_rnn", or your own "path/to/file.py:function", which returns a
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
    guard = subprocess.Popen(
        [sys.executable, "-m", "course_utils.launch.guard", json.dumps(asdict(request))],
        stdin=subprocess.PIPE,  # closes when this process ends, even if it is killed
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_environment(),
        text=True,
        errors="replace",
        start_new_session=True,  # the group that the guard ends, out of reach of Ctrl-C
    )
    with guard:
        threading.Thread(target=_end_leftovers, args=(guard,), daemon=True).start()
        try:
            for line in guard.stdout or ():
                if "connected peer ranks" not in line:  # Gloo announces each connection
                    print(line, end="", flush=True)
        finally:
            if guard.stdin:
                guard.stdin.close()
    return _outcome(request, guard.returncode)


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


def _end_leftovers(guard: subprocess.Popen) -> None:
    """Wait for the guard, then kill what is left of its group, which may hold the output open."""
    guard.wait()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(guard.pid, signal.SIGKILL)


def _outcome(request: Request, status: int) -> RunResult:
    if status == 0 and request.result_file.exists():
        return RunResult.load(request.result_file)
    if request.error_file.exists():
        why = request.error_file.read_text().strip()
    elif status < 0 or status > 128:
        number = -status if status < 0 else status - 128
        why = f"the process that starts the ranks was killed by {signal.Signals(number).name}."
    else:
        why = f"the process that starts the ranks ended with status {status}."
    if status == REFUSED:
        raise LaunchError(why)
    if request.checkpoint.exists():
        why += "\nThe last whole checkpoint is kept, and resume continues from it."
    raise RunError(why)
