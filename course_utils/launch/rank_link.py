"""What a rank tells its supervisor: its output, events, and a mark for every sign of life."""

import faulthandler
import json
import mmap
import os
import shutil
import signal
import socket
import struct
import threading
import time
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path

from course_utils.launch.processes import end_group

EVENT = b"\x1e"  # the ASCII record separator starts an event: a line of JSON among the lines of output
MARK = struct.Struct("<qqdq")  # the fields of a Mark
WHERE = (
    "it has not begun to train",
    "it waits for a batch, for the next epoch, or for other ranks",
    "it has its batch, and has not finished the forward pass",
    "it has finished the forward pass, and waits in the backward pass for its device or for other ranks",
)
SHOW_STACK = signal.SIGUSR2  # asks a silent rank for the line on which it stands


@dataclass(frozen=True)
class Mark:
    """The last sign of life of one rank.

    Attributes:
        count: how many there were; ranks that train together are never more than one step apart.
        step: training steps that it has finished.
        time: when the last one came, in seconds since the epoch.
        phase: where in a step it was, as an index into `WHERE`.
    """

    count: int = 0
    step: int = 0
    time: float = 0.0
    phase: int = 0

    @property
    def where(self) -> str:
        """Say where the rank stood."""
        return f"after step {self.step}, {WHERE[self.phase]}" if self.step else WHERE[self.phase]


class Marks:
    """The last marks of the ranks of one machine, in a file that all of them map into memory.

    A mark costs a microsecond and no message, so that it can be made several times in every training step.
    """

    def __init__(self, folder: Path, *, create_for: int = 0):
        path = folder / "marks"
        if create_for:
            path.write_bytes(MARK.pack(0, 0, time.time(), 0) * create_for)
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)

    def write(self, local_rank: int, mark: Mark) -> None:
        """Replace the mark of one rank.

        The supervisor may read in between, and then sees each field as it was or as it is. `Struct.pack_into` would
        not do: it first fills its place with zeros, and a time of zero is a rank that has been silent for ever.
        """
        start = local_rank * MARK.size
        self._map[start : start + MARK.size] = MARK.pack(*astuple(mark))

    def read(self) -> list[Mark]:
        """Return the last mark of every rank of this machine."""
        return [Mark(*values) for values in MARK.iter_unpack(self._map[:])]


class Link:
    """The line from one process of a run to its supervisor.

    After `open`, all that the process prints goes to the supervisor, also what C++ code writes; and when the
    supervisor dies, in whatever way, the other end of the line closes and the process ends its whole group.

    Args:
        folder: the supervisor's private folder.
    """

    def __init__(self, folder: str):
        self.folder = Path(folder)
        self._owner = 0

    def __getstate__(self):
        return {"folder": self.folder, "_owner": 0}  # a spawned process opens a line of its own

    def open(self, **hello: int) -> None:
        """Connect this process, unless it already is, and say who it is."""
        if self._owner != os.getpid():  # a forked process has the line of its parent
            self._owner = os.getpid()
            self._line = socket.socket(socket.AF_UNIX)
            self._line.connect(str(self.folder / "line"))
            os.dup2(self._line.fileno(), 1)
            os.dup2(self._line.fileno(), 2)
            faulthandler.register(SHOW_STACK, all_threads=False)
            threading.Thread(target=self._end_with_supervisor, daemon=True).start()
        self.tell(hello={"pid": os.getpid(), **hello})

    def tell(self, **event) -> None:
        """Send one event; a supervisor that is gone hears nothing, and `_end_with_supervisor` sees to the rest."""
        with suppress(OSError):
            self._line.sendall(EVENT + json.dumps(event).encode() + b"\n")

    def _end_with_supervisor(self) -> None:
        with suppress(OSError):
            self._line.recv(1)  # the supervisor never writes: this returns when it is gone
        # Nobody else is left to tidy up; and first, since the other processes are about to end this one.
        shutil.rmtree(self.folder, ignore_errors=True)
        end_group(os.getpgrp(), sparing=os.getpid())
        os._exit(1)
