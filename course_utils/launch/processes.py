"""What the launcher and its processes share: how they end, and what the end of one means."""

import os
import signal
import time
from contextlib import suppress

REQUEST = "COURSE_LAUNCH_REQUEST"  # the variable in which the processes of a run find the request
# What usually stands behind a signal that no program sends by itself.
CAUSES = {
    signal.SIGKILL: (
        "Often the system has run out of memory: take a smaller batch, fewer ranks or fewer "
        "workers, or allow the container more memory."
    ),
    signal.SIGBUS: (
        "Often /dev/shm, the shared memory of a container, is full: give it more (docker run "
        "--shm-size=8g), or take strategy ddp, which sends no weights through it."
    ),
}


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
    """Return what the status of an ended process means, and what often causes it."""
    if status >= 0:
        return f"ended with status {status}."
    known = {one.value: one.name for one in signal.Signals}
    cause = CAUSES.get(-status)  # type: ignore[call-overload]
    words = f"was killed by {known.get(-status, f'signal {-status}')}."
    return f"{words} {cause}" if cause else words
