"""The supervisor's end of the connections to the processes of a run."""

import json
import selectors
import socket
from dataclasses import dataclass
from pathlib import Path

from course_utils.launch.link import EVENT

CHATTER = b"[Gloo] Rank "  # torch's CPU back end tells each process whom it met, with no way to turn that off
LONGEST = 1 << 16  # bytes; what has no newline is shown in pieces of this size
Message = tuple[str, str | dict]  # from whom, and a line of output or an event


@dataclass
class _Source:
    name: str
    unread: bytes = b""


class Lines:
    """Accepts connections from the processes of a run, and returns what they send in the order in which it came."""

    def __init__(self, folder: Path):
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
        # Of two ranks that ended, the one that gave a reason counts.
        return sorted(messages, key=lambda message: message[1] == {"closed": True})

    def close(self) -> list[Message]:
        """Return what is left on all connections once the processes are gone, and close them."""
        messages: list[Message] = []
        while self._selector.select(0):
            messages += self.read(0)
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()
        return messages

    def _receive(self, connection, source: _Source) -> list[Message]:
        try:
            data = connection.recv(LONGEST)
        except ConnectionResetError:
            data = b""
        if not data:
            self._selector.unregister(connection)
            connection.close()
            rest = _parse(source.unread, source) if source.unread else []
            return [*rest, (source.name, {"closed": True})]
        *lines, source.unread = (source.unread + data).split(b"\n")
        if len(source.unread) > LONGEST and EVENT not in source.unread:
            lines, source.unread = [*lines, source.unread], b""
        return [message for line in lines for message in _parse(line, source)]


def _parse(line: bytes, source: _Source) -> list[Message]:
    output, is_event, text = line.partition(EVENT)
    try:
        event = json.loads(text) if is_event else None
    except ValueError:  # the lesson itself printed that byte
        event = None
    if not isinstance(event, dict):
        output, event = line, None
    messages: list[Message] = []
    if (output.strip() or event is None) and not output.startswith(CHATTER):
        # A bar that redraws itself in place counts as its last state.
        messages.append((source.name, output.rstrip(b"\r").rpartition(b"\r")[2].decode(errors="replace")))
    if event is not None:
        if "rank" in event.get("hello", {}):
            source.name = f"rank {event['hello']['rank']}"
        messages.append((source.name, event))
    return messages
