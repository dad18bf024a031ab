"""The two ends of the connection between the processes of a run and their supervisor."""

import faulthandler
import json
import os
import selectors
import signal
import socket
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

CHATTER = b"[Gloo] Rank "  # torch's CPU back end tells each process whom it met, with no way to turn that off
LONGEST = 1 << 20  # bytes of a line or an event; what has no newline is shown in pieces of about this size
SHOW_STACK = signal.SIGUSR2  # asks a silent rank for the line on which it stands
MARK = b"\x1elaunch\x1e"  # starts an event, a line of JSON among those of output; nothing that is printed by chance
Message = tuple[str, str | dict]  # from whom, and a line of output or an event


def connect(folder: Path) -> socket.socket:
    """Return a connection to the supervisor, through the socket in its private folder."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(folder / "socket"))
    return connection


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
            self._socket = connect(self.folder)
            os.dup2(self._socket.fileno(), 1)
            os.dup2(self._socket.fileno(), 2)
            faulthandler.register(SHOW_STACK, all_threads=False)
        self.send(hello={"pid": os.getpid(), **hello})

    def send(self, **event: Any) -> None:
        """Send one event, unless the supervisor has gone: then this process is about to be ended too."""
        with suppress(OSError):
            self._socket.sendall(MARK + json.dumps(event).encode() + b"\n")


class Lines:
    """The supervisor's end of all connections, made to the socket in its folder: what arrives, in order."""

    def __init__(self, folder: Path):
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / "socket"))
        self._listener.listen(128)
        self._selector.register(self._listener, selectors.EVENT_READ)

    def read(self, wait_s: float) -> list[Message]:
        """Wait for something to arrive, and return it; the event `closed` says that a connection has ended."""
        messages: list[Message] = []
        for key, _ in self._selector.select(wait_s):
            if key.fileobj is self._listener:
                source = SimpleNamespace(name="main", unread=b"")
                self._selector.register(self._listener.accept()[0], selectors.EVENT_READ, source)
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

    def _receive(self, connection: Any, source: SimpleNamespace) -> list[Message]:
        data = b""
        with suppress(ConnectionResetError):
            data = connection.recv(1 << 16)
        *lines, source.unread = (source.unread + data).split(b"\n")
        if source.unread and (not data or len(source.unread) > LONGEST):
            lines, source.unread = [*lines, source.unread], b""
        messages = [message for line in lines for message in self._parse(line, source)]
        if not data:
            self._selector.unregister(connection)
            connection.close()
            messages.append((source.name, {"closed": True}))
        return messages

    def _parse(self, line: bytes, source: SimpleNamespace) -> list[Message]:
        output, _, text = line.partition(MARK)
        event: Any = None
        messages: list[Message] = []
        with suppress(ValueError):  # most lines hold no event, and one may be torn
            event = json.loads(text)
        if (output.strip() or event is None) and not output.startswith(CHATTER):
            # A bar that redraws itself in place counts as its last state.
            messages.append((source.name, output.rstrip(b"\r").rpartition(b"\r")[2].decode(errors="replace")))
        if event is not None:
            if "rank" in event.get("hello", ()):
                source.name = f"rank {event['hello']['rank']}"
            messages.append((source.name, event))
        return messages
