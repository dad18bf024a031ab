"""Small tools for processes: end a whole group of them, find a free port, keep a folder to one launch."""

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil


def group_members(group: int) -> list[psutil.Process]:
    """Return the running processes of a process group, without those that only wait to be reaped."""
    members = []
    for pid in psutil.pids():
        with suppress(ProcessLookupError, PermissionError, psutil.Error):
            process = psutil.Process(pid) if os.getpgid(pid) == group else None
            if process and process.status() != psutil.STATUS_ZOMBIE:
                members.append(process)
    return members


def end_group(group: int, *, sparing: int | None = None, patience_s: float = 5.0) -> None:
    """Kill every process of a group and wait until they are gone.

    multiprocessing's resource tracker comes last: left to itself for a moment, it removes the semaphores of the dead.

    Args:
        group: the process group.
        sparing: the id of one process to leave alone, such as the caller's.
        patience_s: how long to wait at most.
    """
    start = time.monotonic()
    while time.monotonic() - start < patience_s:
        members = [process for process in group_members(group) if process.pid != sparing]
        if not members:
            return
        trackers = [process for process in members if _is_tracker(process)]
        for process in members:
            if process not in trackers or time.monotonic() - start > 1:
                with suppress(psutil.Error):
                    process.kill()
        time.sleep(0.02)


def _is_tracker(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return any("resource_tracker" in word for word in process.cmdline())
    return False


def died_by(pid: int) -> int | None:
    """Return the signal that ended a process which nobody has reaped yet: 0 if none did, None while that is unknown.

    Linux keeps the exit status of such a process in the last field of /proc/PID/stat (proc_pid_stat(5)).
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[-1]) & 0x7F if fields[0] == "Z" else None


def is_free(port: int) -> bool:
    """Say whether a server could listen on a port of this machine now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True


def free_port() -> int:
    """Return a port that is free now, which another program may still take first."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Keep a folder to this process until the block ends, however it ends: the system frees the lock of the dead.

    Raises:
        RuntimeError: another launch holds it.
    """
    path = folder / "launch.lock"
    with path.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = path.read_text().strip() or "another launch"
            raise RuntimeError(
                f"{folder} is in use by {holder}, which still runs. Wait for it, stop it, or choose another --out."
            ) from None
        with suppress(OSError):  # a full disk has no room for the name, but the lock holds
            path.write_text(f"process {os.getpid()} on {socket.gethostname()} since {time.strftime('%H:%M:%S')}")
        yield
