"""The supervisor's end of the lines to the processes of a run."""

import json
import selectors
import socket
from dataclasses import dataclass
from pathlib import Path

from course_utils.launch.rank_link import EVENT

CHATTER = b"[Gloo] Rank "  # torch's CPU back end tells each process whom it met, with no way to turn that off


@dataclass
class _Line:
    name: str
    unread: bytes = b""


class Switchboard:
    """Takes calls from the processes of a run, and puts what they say in the order in which it came.

    Args:
        folder: the supervisor's private folder; the processes call the socket `line` in it.
    """

    def __init__(self, folder: Path):
        self._selector = selectors.DefaultSelector()
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(folder / "line"))
        self._door.listen(128)
        self._selector.register(self._door, selectors.EVENT_READ)

    def add(self, line: socket.socket, name: str) -> None:
        """Listen to one more process."""
        self._selector.register(line, selectors.EVENT_READ, _Line(name))

    def hear(self, patience_s: float) -> list[tuple[str, str | dict]]:
        """Wait for somebody to speak, and return who said what: a line of output, or an event."""
        said = []
        for key, _ in self._selector.select(patience_s):
            if key.fileobj is self._door:
                self.add(self._door.accept()[0], "main")
            else:
                said += self._read(key.fileobj, key.data)
        return said

    def hear_out(self) -> list[tuple[str, str | dict]]:
        """Return what is left on all lines once the processes are gone, and hang up."""
        said = []
        while self._selector.select(0):
            said += self.hear(0)
        for key in list(self._selector.get_map().values()):
            if key.data and key.data.unread:
                said.append((key.data.name, key.data.unread.decode(errors="replace")))
            key.fileobj.close()
        self._selector.close()
        return said

    def _read(self, line: socket.socket, state: _Line) -> list[tuple[str, str | dict]]:
        try:
            data = line.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        if not data:
            self._selector.unregister(line)
            line.close()
            data = b"\n" if state.unread else b""
        *lines, state.unread = (state.unread + data).split(b"\n")
        return [thing for text in lines for thing in _understand(text, state)]


def _understand(text: bytes, state: _Line) -> list[tuple[str, str | dict]]:
    output, is_event, event = text.partition(EVENT)
    said = []
    if (output.strip() or not is_event) and not output.startswith(CHATTER):
        # A bar that redraws itself in place counts as its last state.
        said.append((state.name, output.rstrip(b"\r").rpartition(b"\r")[2].decode(errors="replace")))
    if is_event:
        message = json.loads(event)
        if "rank" in message.get("hello", {}):
            state.name = f"rank {message['hello']['rank']}"
        said.append((state.name, message))
    return said
