"""Show a run while it is going on: lines with the name of their rank, and one progress bar."""

import time
from typing import Any, TextIO

from tqdm.auto import tqdm

from course_utils.display.bars import open_bar


class View:
    """Prints lines, and shows a progress bar, or else a line for an epoch every few seconds."""

    def __init__(self, stream: TextIO, *, bar: bool):
        self._stream, self._with_bar = stream, bar
        self._bar: Any = None
        self._epochs, self._next_s = 0, 0.0

    def line(self, source: str, text: str) -> None:
        """Print a line of one process, or of the launcher, with what the stream cannot encode replaced."""
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        text = text.encode(encoding, "backslashreplace").decode(encoding)
        tqdm.write(f"[{source}] {text}", file=self._stream)
        self._stream.flush()

    def begin(self, steps: int, done: int, epochs: int) -> None:
        """Open the bar for `steps` steps, of which `done` were made by earlier runs."""
        self._epochs = epochs
        if self._with_bar:
            self._bar = open_bar(steps, "step", initial=done, mininterval=0.2)

    def steps(self, done: int) -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.update(max(0, done - self._bar.n))

    def epoch(self, number: int, loss: float) -> None:
        """Show the loss of a finished epoch."""
        if self._bar is not None:
            self._bar.set_postfix_str(f"epoch {number}/{self._epochs}, loss {loss:.4g}", refresh=False)
        elif time.monotonic() > self._next_s or number == self._epochs:
            self._next_s = time.monotonic() + 2
            self.line("launch", f"epoch {number}/{self._epochs}: loss {loss:.4g}")

    def close(self) -> None:
        """Close the bar where it stands."""
        if self._bar is not None:
            self._bar.refresh()
            self._bar.close()
            self._bar = None
