"""Small tools for processes: run a group of them and end it as a whole, read how one ended, keep a folder to one."""

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from course_utils.launch.messages import LaunchError

# Ends a group of processes and removes a folder when its standard input closes, which happens when the supervisor ends
# in whatever way. It is no thread of the ranks, which could not run while C code holds the interpreter's lock.
# multiprocessing's resource tracker ignores SIGTERM, and uses the second to remove the semaphores of the dead.
GUARD = 'trap "" HUP INT TERM; read _; kill -s TERM -- "-$1"; sleep 1; kill -s KILL -- "-$1"; rm -rf "$2"'


@contextmanager
def process_group(command: list[str], folder: Path, **options: Any) -> Iterator[subprocess.Popen]:
    """Start a command in a group of its own, and end whatever is in that group with the block or with this process."""
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = guard = None
    try:
        process = subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL, **options)
        words = ["/bin/sh", "-c", GUARD, "guard", str(process.pid), str(folder)]
        guard = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True, **quiet)
        yield process
    finally:
        if process:
            end_group(process.pid)
            process.wait()
        if guard:
            guard.kill()
            guard.communicate()


def group_members(group: int) -> list[int]:
    """Return the running processes of a process group, without those that only wait to be reaped."""
    members = []
    for process in psutil.process_iter(["status"]):
        with suppress(OSError):
            if os.getpgid(process.pid) == group and process.info["status"] != psutil.STATUS_ZOMBIE:
                members.append(process.pid)
    return members


def end_group(group: int, *, wait_s: float = 5.0) -> None:
    """End every process of a group, a stubborn one after a second, and wait until they are gone."""
    start, number = time.monotonic(), signal.SIGTERM
    while group_members(group) and time.monotonic() - start < wait_s:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
        time.sleep(0.02)
        number = signal.SIGKILL if time.monotonic() - start > 1 else signal.SIGTERM


def exit_status(pid: int) -> int | None:
    """Return how a process ended that nobody has reaped yet, as `subprocess` would; None while that is unknown."""
    try:  # Linux keeps it in the last field (proc_pid_stat(5))
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    status = int(fields[-1])
    return (-(status & 0x7F) or status >> 8) if fields[0] == "Z" else None


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Keep a folder to this process until the block ends, however it ends: the system frees the lock of the dead.

    Raises:
        LaunchError: another launch holds it.
    """
    path = folder / "launch.lock"
    with path.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = path.read_text().strip() or "another launch"
            raise LaunchError(
                f"{folder} is in use by {holder}, which still runs. Wait for it, stop it, or choose another --out."
            ) from None
        with suppress(OSError):  # a full disk has no room for the name, but the lock holds
            path.write_text(f"process {os.getpid()} on {os.uname().nodename} since {time.strftime('%H:%M:%S')}")
        yield
