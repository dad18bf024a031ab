"""Small tools for processes: end a whole group of them, read how one ended, keep a folder to one launch."""

import fcntl
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from course_utils.launch.messages import LaunchError

# Ends a group of processes and removes a folder when its standard input closes. multiprocessing's resource tracker
# ignores SIGTERM, and uses the second before SIGKILL to remove the semaphores of the dead.
GUARD = 'trap "" HUP INT TERM; read _; kill -TERM -- "-$1"; sleep 1; kill -KILL -- "-$1"; rm -rf "$2"'


def start_guard(group: int, folder: Path) -> subprocess.Popen:
    """Start a process that ends a group and removes a folder as soon as this process ends, in whatever way.

    It works where no Python thread in the group could: when C code holds the interpreter's lock.
    """
    command = ["/bin/sh", "-c", GUARD, "guard", str(group), str(folder)]
    devnull = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=devnull, stderr=devnull, start_new_session=True)


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
    start = time.monotonic()
    number = signal.SIGTERM
    while group_members(group) and time.monotonic() - start < wait_s:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
        time.sleep(0.02)
        number = signal.SIGKILL if time.monotonic() - start > 1 else signal.SIGTERM


def exit_status(pid: int) -> int | None:
    """Return how a process ended that nobody has reaped yet, as `subprocess` would; None while that is unknown.

    Linux keeps the status of such a process in the last field of /proc/PID/stat (proc_pid_stat(5)).
    """
    try:
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
            path.write_text(f"process {os.getpid()} on {socket.gethostname()} since {time.strftime('%H:%M:%S')}")
        yield
