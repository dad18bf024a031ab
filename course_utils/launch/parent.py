"""The launcher's own part: start `child.py`, show what it prints, and leave nothing running."""

import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from course_utils.atomic_write import file_identity
from course_utils.launch.environment import clean_environment, short_temporary_folder
from course_utils.launch.processes import REQUEST, end_group, how_it_ended
from course_utils.launch.request import LaunchError, Request
from course_utils.launch.result import RunResult
from course_utils.missing_packages import install_command
from course_utils.units import format_bytes

END = "\0the end of a run\n"
HOLDER = b"the launch of "  # how the text in a lock begins


class RunError(RuntimeError):
    """A training that failed after it had started: a rank raised an error or was killed."""


def run_training(
    training: str,
    *,
    strategy: str = Request.strategy,
    count: int | None = Request.count,
    accelerator: str = Request.accelerator,
    epochs: int = Request.epochs,
    seed: int | None = Request.seed,
    out: str | Path = Request.out,
    resume: bool = Request.resume,
) -> RunResult:
    """Train in processes outside this kernel, and print what they print.

    Args:
        training: "path/to/file.py:function" or "package.module:function", a function that returns
            a LightningModule and its DataLoader. (`%%writefile` writes a cell to such a file.)
        strategy: "ddp_spawn" builds the training once and sends it to the processes; "ddp" builds
            it in each of them. Where a step leaves parameters unused, Lightning's error asks for
            one of its longer names, such as "ddp_find_unused_parameters_true".
        count: how many GPUs or CPU processes; None takes all GPUs, or one CPU process.
        accelerator: "cpu", "gpu", or "auto" for the GPUs of NVIDIA or AMD if there are any.
        epochs: passes over the data, including those before a resume.
        seed: what the random numbers of the weights and of each epoch begin with. None takes the
            seed that the function sets itself, or else always the same one. Ranks begin with equal
            weights and share out one order of the samples; for dropout each draws its own numbers.
        out: the folder for the checkpoint and the result. No file of others is touched there, and
            the checkpoint and result of an earlier run are kept under other names.
        resume: continue from the checkpoint in `out`, if there is one. Each epoch is seeded, so the
            result equals that of an unbroken run, also with dropout and shuffled data. It differs
            if the loader has a random generator of its own or persistent workers, or, with several
            ranks, a random sampler of its own.

    Raises:
        LaunchError: the request was refused, and nothing was trained.
        RunError: a rank raised an error or was killed.

    Ctrl-C, or the kernel's stop button, ends every process of the run.

    >>> result = run_training("my_training.py:make", accelerator="cpu", epochs=1, out="runs/one")
    training my_training.py:make with 1 rank on cpu
    epoch 1/1: train_loss ...
    >>> result.ranks, len(result.losses)
    (1, 1)
    """
    if not any(map(importlib.util.find_spec, ("lightning", "pytorch_lightning"))):
        raise LaunchError(f"Lightning is not installed: {install_command('lightning')}")
    request = Request(
        training=training,
        strategy=strategy,
        count=count,
        accelerator=accelerator,
        epochs=epochs,
        seed=seed,
        out=os.fspath(out) if isinstance(out, os.PathLike) else out,
        resume=resume,
    )
    with _own_folder(request) as lock, short_temporary_folder() as variables:
        saved_before, parts_before = file_identity(request.checkpoint), request.parts()
        status, report = _follow(request, lock, variables)
        for part in request.parts() - parts_before:  # what a rank of this launch was writing
            part.unlink()
        if status == 0 and not report:
            return RunResult.load(request.result_file)
        if report:
            why, refused = report["why"], report["refused"]
        else:
            why, refused = _why_it_ended(status), False
        if refused:
            raise LaunchError(why)
        if file_identity(request.checkpoint) != saved_before:
            why += "\nThe last whole checkpoint is kept, and resume continues from it."
        raise RunError(why)


def _why_it_ended(status: int) -> str:
    """Return why the process that starts the ranks ended, when it could not say that itself."""
    import resource

    why = f"the process that starts the ranks {how_it_ended(status)}"
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        why += (
            f" `ulimit -v` allows a process {format_bytes(limit)} of address space here, which may "
            "be too little for PyTorch: raise it."
        )
    return why


@contextmanager
def _own_folder(request: Request) -> Iterator[int]:
    """Create the folder, and lock it for as long as this process or the training runs."""
    lock = _open_lock(Path(request.out))
    try:
        _take_lock(lock, request)
        yield lock
    finally:
        os.close(lock)


def _open_lock(folder: Path) -> int:
    """Return the open lock file of a folder, and create both where they are not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder / "launch.lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise LaunchError(
            f"the folder {folder} cannot be used: {error}. Choose another folder."
        ) from None


def _take_lock(lock: int, request: Request) -> None:
    """Take the lock and write into it who holds it, or raise LaunchError with the name of who does.

    Nothing is written where a file of the folder is no launch's.
    """
    import fcntl

    holder = os.read(lock, 1000)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        other = holder.decode(errors="replace") or "another launch"
        raise LaunchError(f"{request.out} is in use by {other}. Choose another folder.") from None
    _refuse_files_of_others(request, holder)
    os.truncate(lock, 0)
    os.pwrite(lock, HOLDER + f"{request.training} (process {os.getpid()})".encode(), 0)


def _refuse_files_of_others(request: Request, holder: bytes) -> None:
    """Raise LaunchError if a file here that would be overwritten is no launch's."""
    foreign = []
    if holder and not holder.startswith(HOLDER):
        foreign.append("launch.lock")
    if request.result_file.exists():
        try:
            RunResult.load(request.result_file)
        except (OSError, ValueError):
            foreign.append(request.result_file.name)
    if foreign:
        raise LaunchError(
            f"{request.out} holds a file {foreign[0]} that the launcher did not write, and would "
            "overwrite. Choose another folder."
        )


def _follow(request: Request, lock: int, variables: Mapping[str, str]) -> tuple[int, dict]:
    """Run the training, print what it prints, and return its status and what it reports."""
    output, write_output = os.pipe()
    report, write_report = os.pipe()
    described = {REQUEST: json.dumps(asdict(request)), **variables}
    try:
        training = subprocess.Popen(
            # A file, and not -m, which would put the working folder before the libraries.
            [sys.executable, "-P", str(Path(__file__).with_name("child.py")), str(write_report)],
            stdin=subprocess.PIPE,  # closes when this process ends, even if it is killed
            stdout=write_output,
            stderr=subprocess.STDOUT,
            env=clean_environment(os.environ) | described,
            pass_fds=(write_report, lock),
            start_new_session=True,  # a group of its own, out of reach of Ctrl-C
        )
    except OSError as error:
        for end in (output, write_output, report, write_report):
            os.close(end)
        raise LaunchError(f"the process of the training does not start: {error}.") from None
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
