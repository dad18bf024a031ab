"""Small tools for processes: run a group of them and end it as a whole, read how one ended, keep a
folder to one.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from course_utils.launch.messages import LaunchError

# Reads the number of a group of processes. When its standard input closes, which happens when the
# supervisor ends in whatever way, it ends the group, and what has left the group (Linux), and
# removes a folder. It is no thread of the ranks, which could not run while C code holds the
# interpreter's lock. multiprocessing's resource tracker ignores SIGTERM, and uses the second to
# remove the semaphores of the dead.
GUARD = """
trap "" HUP INT TERM; read group; read _; kill -s TERM -- "-$group"; sleep 1; kill -s KILL -- "-$group"
for file in $(grep -lsaF -- "TMPDIR=$1" /proc/[0-9]*/environ); do
  file="${file%/environ}"; kill -s KILL "${file#/proc/}"
done
rm -rf "$1"
"""


@contextmanager
def process_group(
    command: list[str], folder: Path, environ: dict[str, str]
) -> Iterator[subprocess.Popen]:
    """Start a command in a group of its own, and end all that came of it with the block or with
    this process.

    What has left the group is found by its variable TMPDIR, which names the folder.
    """
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    words = ["/bin/sh", "-c", GUARD, "guard", str(folder)]
    guard: Any = subprocess.Popen(
        words, stdin=subprocess.PIPE, bufsize=0, start_new_session=True, **quiet
    )
    with guard:
        streams: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
        }
        process = subprocess.Popen(command, start_new_session=True, env=environ, **streams)
        try:
            with suppress(BrokenPipeError):  # somebody has ended it
                guard.stdin.write(f"{process.pid}\n".encode())
            yield process
        finally:
            end_group(process, f"TMPDIR={folder}")
            guard.kill()


def end_group(process: subprocess.Popen, setting: str) -> None:
    """End a process with its whole group, and every other with this variable set, the stubborn ones
    after a second.
    """
    start = time.monotonic()
    while (process.poll() is None or processes_with(setting)) and time.monotonic() - start < 5:
        _send(
            signal.SIGKILL if time.monotonic() - start > 1 else signal.SIGTERM, process.pid, setting
        )
        time.sleep(0.02)
    # where no variables can be read, one of the group may still run
    _send(signal.SIGKILL, process.pid, setting)


def _send(number: signal.Signals, group: int, setting: str) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
    for pid in processes_with(setting):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def processes_with(setting: str) -> list[int]:
    """Return the processes that were started with a variable set like this, NAME=value."""
    import psutil  # one of the extras, which a dry run does without

    name, _, value = setting.partition("=")
    found = psutil.process_iter(["environ"])  # None for those of other users
    return [process.pid for process in found if (process.info["environ"] or {}).get(name) == value]


def exit_status(pid: int) -> int | None:
    """Return how a process ended that nobody has reaped yet, as `subprocess` would; None while that
    is unknown.
    """
    with suppress(OSError):  # Linux keeps it in the last field (proc_pid_stat(5))
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        if fields[0] == "Z":
            return os.waitstatus_to_exitcode(int(fields[-1]))
    return None


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Make a folder and keep it to this process until the block ends, in whatever way: the system
    frees the lock.

    Raises:
        LaunchError: another launch holds it, or nothing can be written there.
    """
    import fcntl  # not on Windows

    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            opened = os.open(
                folder / "launch.lock",
                os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK,
                0o644,
            )
            lock = stack.enter_context(os.fdopen(opened, "r+"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = lock.read(200).strip() or "another launch"
            advice = "Wait for it, stop it, or choose another --out."
            raise LaunchError(
                f"{folder} is in use by {holder}, which still runs. {advice}"
            ) from None
        except (OSError, ValueError) as error:
            why = f"--out {str(folder)!r} cannot be used: {error}"
            raise LaunchError(f"{why}. Choose a folder that you may write to.") from None
        with suppress(OSError):  # a full disk has no room for the name, but the lock holds
            os.ftruncate(opened, 0)
            holder = (
                f"process {os.getpid()} on {os.uname().nodename} since {time.strftime('%H:%M:%S')}"
            )
            os.pwrite(opened, holder.encode(errors="replace"), 0)
        yield


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that is whole or the old one, whatever happens, and that replaces a link rather
    than follows it.

    Raises:
        OSError: it could not be written; nothing is left beside the old one.
    """
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
