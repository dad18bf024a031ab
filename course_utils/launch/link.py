"""What a rank sends to its supervisor: its output, events, and heartbeats."""

import faulthandler
import json
import mmap
import os
import signal
import socket
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

EVENT = b"\x1e"  # the ASCII record separator starts an event: a line of JSON among the lines of output
LAYOUT = struct.Struct("<qqdq")  # of a Heartbeat in the file
PHASES = (
    "it has not begun to train",
    "it waits for a batch, for the next epoch, or for other ranks",
    "it has its batch, and has not finished the forward pass",
    "it has finished the forward pass, and waits in the backward pass for its device or for other ranks",
)
SHOW_STACK = signal.SIGUSR2  # asks a silent rank for the line on which it stands


class Heartbeat(NamedTuple):
    """The last sign of life of one rank.

    Attributes:
        count: how many there were; ranks that train together are never more than one step apart.
        step: training steps that it has finished.
        time_s: when the last one came, by the clock of `time.monotonic`, which all processes of a machine share.
        phase: where in a step it was, as an index into `PHASES`.
    """

    count: int = 0
    step: int = 0
    time_s: float = 0.0
    phase: int = 0

    @property
    def where(self) -> str:
        """Say where the rank stood."""
        return f"after step {self.step}, {PHASES[self.phase]}" if self.step else PHASES[self.phase]


class Heartbeats:
    """The last heartbeat of each rank of one machine, in a file that all of them map into memory.

    A heartbeat costs a microsecond and no message, so that there can be several in every training step.
    """

    def __init__(self, folder: Path, *, create_for: int = 0):
        path = folder / "heartbeats"
        if create_for:
            path.write_bytes(LAYOUT.pack(*Heartbeat(time_s=time.monotonic())) * create_for)
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)

    def write(self, local_rank: int, beat: Heartbeat) -> None:
        """Replace the heartbeat of one rank; who reads at that moment sees each field as it was or as it is.

        `Struct.pack_into` would not do: it first fills its place with zeros, which looks like a rank that never began.
        """
        start = local_rank * LAYOUT.size
        self._map[start : start + LAYOUT.size] = LAYOUT.pack(*beat)

    def read(self) -> list[Heartbeat]:
        """Return the last heartbeat of every rank of this machine."""
        return [Heartbeat(*values) for values in LAYOUT.iter_unpack(self._map[:])]


class Link:
    """The connection from one process of a run to its supervisor, whose private folder has the socket.

    After `open`, all that the process prints goes to the supervisor, also what C++ code writes.
    """

    def __init__(self, folder: str):
        self.folder = Path(folder)
        self._owner = 0

    def __getstate__(self) -> dict:
        return {"folder": self.folder, "_owner": 0}  # a spawned process opens a connection of its own

    def open(self, **hello: int) -> None:
        """Connect this process, unless it already is, and say which rank it is."""
        if self._owner != os.getpid():  # a forked process has the connection of its parent
            self._owner = os.getpid()
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(str(self.folder / "socket"))
            os.dup2(self._socket.fileno(), 1)
            os.dup2(self._socket.fileno(), 2)
            faulthandler.register(SHOW_STACK, all_threads=False)
        self.send(hello={"pid": os.getpid(), **hello})

    def send(self, **event: object) -> None:
        """Send one event. A supervisor that has gone misses nothing: this process is about to be ended too."""
        with suppress(OSError):
            self._socket.sendall(EVENT + json.dumps(event).encode() + b"\n")
