"""The two ends of the connection between the processes of a run and their supervisor."""

import faulthandler
import json
import os
import selectors
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHATTER = b"[Gloo] Rank "  # torch's CPU back end tells each process whom it met, with no way to turn that off
LONGEST = 1 << 16  # bytes; what has no newline is shown in pieces of about this size
LONGEST_EVENT = 1 << 20
SHOW_STACK = getattr(signal, "SIGUSR2", 0)  # asks a silent rank for the line on which it stands; none on Windows
Message = tuple[str, str | dict]  # from whom, and a line of output or an event


def event_mark(folder: Path) -> bytes:
    """Return what starts an event, a line of JSON among the lines of output: nothing that a lesson prints by chance."""
    return b"\x1e" + folder.name.encode(errors="replace") + b" "


class Link:
    """A process's end of the connection, to the socket in the supervisor's private folder.

    After `open`, all that the process prints goes to the supervisor, also what C++ code writes.
    """

    def __init__(self, folder: str, asked: Any = None):
        self.folder, self.asked = Path(folder), asked  # the options of the run, for what a rank has to say about them
        self._owner = 0

    def __getstate__(self) -> dict:  # a spawned process opens a connection of its own
        return {"folder": self.folder, "asked": self.asked, "_owner": 0}

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

    def send(self, **event: Any) -> None:
        """Send one event, unless the supervisor has gone: then this process is about to be ended too."""
        with suppress(OSError):
            self._socket.sendall(event_mark(self.folder) + json.dumps(event).encode() + b"\n")


@dataclass
class _Source:
    name: str
    unread: bytes = b""


class Lines:
    """The supervisor's end of all connections, which returns what arrives in the order in which it came."""

    def __init__(self, folder: Path):
        self.mark = event_mark(folder)
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / "socket"))
        self._listener.listen(128)
        self._selector.register(self._listener, selectors.EVENT_READ)

    def add(self, connection: socket.socket, name: str) -> None:
        """Read from one more process."""
        self._selector.register(connection, selectors.EVENT_READ, _Source(name))

    def read(self, wait_s: float) -> list[Message]:
        """Wait for something to arrive, and return it; the event `closed` says that a connection has ended."""
        messages: list[Message] = []
        for key, _ in self._selector.select(wait_s):
            if key.fileobj is self._listener:
                self.add(self._listener.accept()[0], "main")
            else:
                messages += self._receive(key.fileobj, key.data)
        # Of two processes that have ended, the one that gave a reason comes first.
        return sorted(messages, key=lambda message: message[1] == {"closed": True})

    def close(self) -> list[Message]:
        """Return what is left on all connections once the processes are gone, and close them."""
        messages: list[Message] = []
        while self._selector.select(0):
            messages += self.read(0)
        self._listener.close()
        self._selector.close()
        return messages

    def _receive(self, connection: Any, source: _Source) -> list[Message]:
        messages: list[Message] = []
        data = b""
        with suppress(ConnectionResetError):
            data = connection.recv(LONGEST)
        if not data:
            self._selector.unregister(connection)
            connection.close()
            while source.unread:
                messages += self._parse(source.unread, source)
            return [*messages, (source.name, {"closed": True})]
        *lines, last = (source.unread + data).split(b"\n")
        source.unread = b""
        for line in lines:
            messages += self._parse(source.unread + line, source)
        source.unread += last
        if len(source.unread) > (LONGEST_EVENT if self.mark in source.unread else LONGEST):
            messages += self._parse(source.unread, source)
        return messages

    def _parse(self, line: bytes, source: _Source) -> list[Message]:
        output, _, text = line.partition(self.mark)
        source.unread = b""
        with suppress(ValueError):  # most lines hold no event, and one may be torn
            if isinstance(event := json.loads(text), dict):
                source.unread = output  # the event came into the middle of a line, of which the rest is to come
                match event:
                    case {"hello": {"rank": rank}}:
                        source.name = f"rank {rank}"
                return [(source.name, event)]
        # A bar that redraws itself in place counts as its last state.
        shown = output.rstrip(b"\r").rpartition(b"\r")[2].decode(errors="replace")
        return [] if output.startswith(CHATTER) else [(source.name, shown)]
