"""The two ends of the connections between the processes of a run and their supervisor."""

import faulthandler
import json
import os
import selectors
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils.launch.clusters import find_cluster

# torch's CPU back end tells each process whom it met, with no way to turn that off
CHATTER = b"[Gloo] Rank "
# a variable with what a rank is to do: a lesson may have arguments, which are its own
REQUEST = "LAUNCH_REQUEST"
LONGEST = 1 << 16  # bytes; what has no newline is shown in pieces of about this size
# asks a silent rank for the line on which it stands; none on Windows
SHOW_STACK = getattr(signal, "SIGUSR2", 0)
Message = tuple[str, str | dict]  # from whom, and a line of output or an event


class Link:
    """A process's end: two connections to the socket in the supervisor's private folder, for events
    and for output.

    After `open`, all that the process prints goes to the supervisor, also what C++ code writes.
    """

    _events: socket.socket

    def __init__(self, folder: str | Path, asked: Any = None):
        # the options of the run, for what a rank has to say about them
        self.folder, self.asked = Path(folder), asked
        self._opened: tuple[int, str] | None = None  # by which process, under which name

    def __reduce__(self) -> tuple:  # a spawned process opens connections of its own
        return Link, (self.folder, self.asked)

    def open(self, otherwise: str = "main") -> None:
        """Connect this process under the name of its rank, if the environment says which, or else
        as `otherwise`.
        """
        cluster = find_cluster(os.environ)
        rank = os.environ.get("LOCAL_RANK") if cluster.kind == "none" else cluster.rank
        name = otherwise if rank is None else f"rank {rank}"
        # a forked process has the connections of its parent
        if self._opened != (os.getpid(), name):
            if self._opened:
                self._events.close()
            self._opened = os.getpid(), name
            with self._connect(f"output {name}") as output:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
            self._events = self._connect(f"events {name}")
            faulthandler.register(SHOW_STACK, all_threads=False)
            self.send(hello=os.getpid())

    def send(self, **event: Any) -> None:
        """Send one event, unless the supervisor has gone: then this process is about to be ended
        too.
        """
        with suppress(OSError):
            self._events.sendall(json.dumps(event).encode() + b"\n")

    def _connect(self, first_line: str) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(self.folder / "socket"))
        connection.sendall(f"{first_line}\n".encode())
        return connection


@dataclass
class _Source:
    kind: str = ""  # "events" or "output": the first line of a connection says it, and whose it is
    name: str = ""
    unread: bytes = b""


class Lines:
    """The supervisor's end of all connections. Each keeps its order; of what is read at once,
    output comes first.
    """

    def __init__(self, folder: Path):
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / "socket"))
        self._listener.listen(128)
        self._selector.register(self._listener, selectors.EVENT_READ)

    def add(self, output: Any, name: str) -> None:
        """Read the output of a process that has no link yet."""
        self._selector.register(output, selectors.EVENT_READ, _Source("output", name))

    def read(self, wait_s: float) -> list[Message]:
        """Wait for something to arrive, and return it; the event `closed` says that a process has
        no link any more.
        """
        messages: list[Message] = []
        for key, _ in self._selector.select(wait_s):
            if key.fileobj is self._listener:
                self._selector.register(self._listener.accept()[0], selectors.EVENT_READ, _Source())
            else:
                messages += self._receive(key.fileobj, key.data)
        # What a process printed comes before what it then said; of two that have ended, first the
        # one with a reason.
        return sorted(
            messages,
            key=lambda message: (isinstance(message[1], dict), message[1] == {"closed": True}),
        )

    def close(self) -> list[Message]:
        """Return what is left on all connections once the processes are gone, and close them."""
        messages: list[Message] = []
        while self._selector.select(0):
            messages += self.read(0)
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()
        return messages

    def _receive(self, connection: Any, source: _Source) -> Iterator[Message]:
        data = b""
        with suppress(ConnectionResetError):
            data = os.read(connection.fileno(), LONGEST)
        *lines, source.unread = (source.unread + data).split(b"\n")
        if source.kind == "output" and source.unread and (not data or len(source.unread) > LONGEST):
            lines.append(source.unread)
            source.unread = b""
        for line in lines:
            if not source.kind:
                source.kind, source.name = line.decode().split(" ", 1)
            elif source.kind == "events":
                yield source.name, json.loads(line)
            elif not line.startswith(CHATTER):
                # A bar that redraws itself in place counts as its last state.
                yield source.name, line.rstrip(b"\r").rpartition(b"\r")[2].decode(errors="replace")
        if not data:
            self._selector.unregister(connection)
            connection.close()
            if source.kind == "events":
                yield source.name, {"closed": True}
