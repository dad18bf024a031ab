"""Start the processes of a training, show what they print, and leave none of them running."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from course_utils.extras import install_command
from course_utils.launch.request import LaunchError, Request
from course_utils.launch.result import RunResult
from course_utils.whole_file import written_as

REQUEST = "COURSE_LAUNCH_REQUEST"  # the variable in which the processes of a run find the request
END = "\0the end of a run\n"
HOLDER = "the launch of"  # how the text in a lock begins
# What torchrun or SLURM may have left in this shell: Lightning would wait for their ranks.
FOREIGN = re.compile(
    r"((LOCAL_|GROUP_|ROLE_)?(RANK|WORLD_SIZE)|NODE_RANK|ROLE_NAME|MASTER_(ADDR|PORT)"
    r"|TORCHELASTIC_[A-Z_]+|SLURM_(NTASKS(_PER_NODE)?|PROCID|LOCALID|NODEID)|JSM_NAMESPACE_[A-Z_]+)"
)


class RunError(RuntimeError):
    """A training that failed after it had started: a rank raised an error or was killed."""


def run_lesson(
    lesson: str,
    *,
    strategy: str = Request.strategy,
    devices: int | None = Request.devices,
    accelerator: str = Request.accelerator,
    epochs: int = Request.epochs,
    out: str | Path = Request.out,
    resume: bool = Request.resume,
) -> RunResult:
    """Train in processes outside this kernel, and print what they print.

    Args:
        lesson: "path/to/file.py:function" or "package.module:function", a function that returns a
            LightningModule and its DataLoader. (`%%writefile` writes a cell to such a file.)
        strategy: "ddp_spawn" builds the training once and sends it to the processes; "ddp" builds
            it in each of them.
        devices: how many GPUs or CPU processes; None takes all GPUs, or one CPU process.
        accelerator: "cpu", "gpu", or "auto" for the GPUs of NVIDIA or AMD if there are any.
        epochs: passes over the data, including those before a resume.
        out: the folder for the checkpoint and the result.
        resume: continue from the checkpoint in `out`, if there is one. Each epoch is seeded, so the
            result equals that of an unbroken run, also with dropout and shuffled data. It differs
            if the loader has a random generator of its own or persistent workers, or, with several
            ranks, a random sampler of its own.

    Raises:
        LaunchError: the request was refused, and nothing was trained.
        RunError: a rank raised an error or was killed.

    Ctrl-C, or the kernel's stop button, ends every process of the run.

    >>> result = run_lesson(
    ...     "course_lessons.air_rnn:air_rnn", accelerator="cpu", epochs=1, out="runs/example"
    ... )
    training course_lessons.air_rnn:air_rnn with 1 rank on cpu
    epoch 1/1: train_loss ...
    >>> result.ranks, len(result.losses)
    (1, 1)
    """
    if not any(map(importlib.util.find_spec, ("lightning", "pytorch_lightning"))):
        raise LaunchError(f"Lightning is not installed: {install_command('lightning')}")
    request = Request(lesson, strategy, devices, accelerator, epochs, str(out), resume)
    with _own_folder(request) as lock:
        saved_before = written_as(request.checkpoint)
        parts_before = request.parts()
        status, report = _follow(request, lock)
        for part in request.parts() - parts_before:  # what a rank of this launch was writing
            part.unlink()
        if status == 0 and not report:
            return RunResult.load(request.result_file)
        if report:
            why, refused = report["why"], report["refused"]
        else:
            why, refused = f"the process that starts the ranks {how_it_ended(status)}.", False
        if refused:
            raise LaunchError(why)
        if written_as(request.checkpoint) != saved_before:
            why += "\nThe last whole checkpoint is kept, and resume continues from it."
        raise RunError(why)


def end_group(group: int) -> None:
    """Ask every process of a group to end, and kill after a second what is left of it.

    multiprocessing's resource tracker ignores the request: it uses the second to remove what the
    others have left in shared memory.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGTERM)
        time.sleep(1)
        os.killpg(group, signal.SIGKILL)


def how_it_ended(status: int) -> str:
    """Return what the status of an ended process means, in words."""
    if status >= 0:
        return f"ended with status {status}"
    known = {one.value: one.name for one in signal.Signals}
    return f"was killed by {known.get(-status, f'signal {-status}')}"


def clean_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for a training: without another launcher's, and with calm output."""
    clean = {name: value for name, value in variables.items() if not FOREIGN.fullmatch(name)}
    clean["PYTHONUNBUFFERED"] = "1"
    clean["PYTHONIOENCODING"] = "utf-8:backslashreplace"
    # When a process is killed, multiprocessing removes its semaphores, and warns that it does.
    # torch 2.8 and 2.9 make Python 3.13 warn ten times in each process.
    ignored = "ignore:resource_tracker,ignore:functools.partial will be a method descriptor"
    warnings = clean.get("PYTHONWARNINGS", "")
    clean["PYTHONWARNINGS"] = f"{warnings},{ignored}".removeprefix(",")
    return clean


@contextmanager
def _own_folder(request: Request) -> Iterator[int]:
    """Create the folder, and lock it for as long as this process or the training runs."""
    import fcntl

    folder = Path(request.out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / "launch.lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise LaunchError(f"the folder {folder} cannot be used: {error}.") from None
    try:
        holder = os.read(lock, 1000).decode(errors="replace")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = holder or "another launch"
            raise LaunchError(f"{folder} is in use by {holder}. Choose another folder.") from None
        _refuse_files_of_others(request, holder)
        os.truncate(lock, 0)
        os.pwrite(lock, f"{HOLDER} {request.lesson} (process {os.getpid()})".encode(), 0)
        yield lock
    finally:
        os.close(lock)


def _refuse_files_of_others(request: Request, holder: str) -> None:
    """Raise LaunchError if the launch would write over a file that no launch has written."""
    foreign = []
    if holder and not holder.startswith(HOLDER):
        foreign.append("launch.lock")
    if request.result_file.exists():
        try:
            RunResult.load(request.result_file)
        except ValueError:
            foreign.append(request.result_file.name)
    if foreign:
        raise LaunchError(
            f"{request.out} holds a file {foreign[0]} that the launcher did not write, and would "
            "overwrite. Choose another folder."
        )


def _follow(request: Request, lock: int) -> tuple[int, dict]:
    """Run the training, print what it prints, and return its status and what it reports."""
    output, write_output = os.pipe()
    report, write_report = os.pipe()
    training = subprocess.Popen(
        # A file, and not -m, which would put the working folder before the libraries.
        [sys.executable, "-P", str(Path(__file__).with_name("train.py")), str(write_report)],
        stdin=subprocess.PIPE,  # closes when this process ends, even if it is killed
        stdout=write_output,
        stderr=subprocess.STDOUT,
        env=clean_environment(os.environ) | {REQUEST: json.dumps(asdict(request))},
        pass_fds=(write_report, lock),
        start_new_session=True,  # a group of its own, out of reach of Ctrl-C
    )
    os.close(write_report)

    def end_leftovers() -> None:
        """End what has outlived the training, and the output, which it may hold open."""
        training.wait()
        end_group(training.pid)
        with suppress(BrokenPipeError):
            os.write(write_output, END.encode())
        os.close(write_output)

    with training, open(output, encoding="utf-8", errors="replace") as lines:
        threading.Thread(target=end_leftovers, daemon=True).start()
        try:
            for line in lines:
                if "connected peer ranks" not in line:  # Gloo announces each connection
                    print(line.removesuffix(END), end="", flush=True)
                if line.endswith(END):
                    break
        except BaseException:
            end_group(training.pid)
            raise
    os.set_blocking(report, False)
    with open(report, "rb", buffering=0) as reported:
        return training.returncode, json.loads(reported.read(2**16) or b"{}")
