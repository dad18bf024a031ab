"""What a launch shows: lines with the name of their rank, one progress bar, and the result."""

import json
import math
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, TextIO

from course_utils.progress_bars import open_bar
from course_utils.text import html_card, text_table


class View:
    """Prints lines, and shows a progress bar, or else a line for an epoch every few seconds."""

    def __init__(self, stream: TextIO, *, bar: bool):
        from tqdm.auto import tqdm  # one of the extras, which a dry run does without

        self._stream, self._with_bar = stream, bar
        self._bar: Any = tqdm(disable=True)
        self._epochs, self._next_s = 0, 0.0

    def line(self, source: str, text: str) -> None:
        """Print a line of one process, or of the launcher, with what the stream cannot encode
        replaced.
        """
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        text = text.encode(encoding, "backslashreplace").decode(encoding)
        # Beside no bar tqdm is not asked: it trips over one that an interrupt has left half made.
        (print if self._bar.disable else self._bar.write)(f"[{source}] {text}", file=self._stream)
        self._stream.flush()

    def begin(self, steps: int, done: int, epochs: int) -> None:
        """Open the bar for `steps` steps, of which `done` were made by earlier runs."""
        self._epochs = epochs
        if self._with_bar:
            self._bar = open_bar(steps, "step", initial=done, mininterval=0.2)

    def steps(self, done: int) -> None:
        """Move the bar."""
        self._bar.update(max(0, done - self._bar.n))

    def epoch(self, number: int, loss: float | None) -> None:
        """Show the loss of a finished epoch."""
        if self._with_bar:
            self._bar.set_postfix_str(
                f"epoch {number}/{self._epochs}, loss {_said(loss)}", refresh=False
            )
        elif time.monotonic() > self._next_s or number == self._epochs:
            self._next_s = time.monotonic() + 2
            self.line("launch", f"epoch {number}/{self._epochs}: loss {_said(loss)}")

    def close(self) -> None:
        """Close the bar where it stands, whatever state an interrupt has left it in."""
        with suppress(Exception):  # it counts as closed as soon as it is asked to close
            self._bar.close()


@dataclass(frozen=True)
class RunResult:
    """What a launch came to."""

    lesson: str
    strategy: str  # how its processes were started, as requested
    ranks: int
    steps: int  # of the optimizer since the very first run, with those of the runs that it resumed
    # the mean over the samples of all ranks, for each epoch since the very first run
    losses: list[float | None]
    metrics: dict[str, float] = field(default_factory=dict)  # what the lesson logged last
    samples_per_rank: list[int] = field(default_factory=list)  # in the last epoch
    # over all ranks in the fastest epoch of this run, with its validation
    samples_per_s: float = 0.0
    checkpoint: str = ""  # the file to resume from
    train_s: float = 0.0  # from the first step of this run to its last
    total_s: float = 0.0  # from the command to the end of the last process
    log: str = ""  # the file with what the lesson logged in the last run

    def to_json(self) -> str:
        """Return the result as one JSON object, with null for what is not a finite number."""
        # NaN is no JSON
        return json.dumps(json.loads(json.dumps(asdict(self)), parse_constant=lambda name: None))

    def advice(self) -> str:
        """Return since when the loss is no finite number and what to do about it, or "" where it is
        one.
        """
        since = (
            max(
                (epoch for epoch, loss in enumerate(self.losses, 1) if math.isfinite(loss or 0)),
                default=0,
            )
            + 1
        )
        if since > len(self.losses):
            return ""
        said = f"the loss has been {_said(self.losses[-1])} since epoch {since}"
        return f"{said}: lower the learning rate, or look for NaN and infinity in the data."

    def __repr__(self) -> str:
        return text_table(*self._table())

    def _repr_html_(self) -> str:
        return html_card("Result", *self._table())

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        first, last = (self.losses[0], self.losses[-1]) if self.losses else (math.nan, math.nan)
        return (
            "lesson",
            f"{self.lesson}, {self.strategy}, {self.ranks} rank{'s' * (self.ranks > 1)}",
        ), [
            ("loss", f"{_said(first)} in epoch 1, {_said(last)} in epoch {len(self.losses)}"),
            ("steps", str(self.steps)),
            ("samples per rank", ", ".join(map(str, self.samples_per_rank)) or "none in this run"),
            ("samples per s", f"{self.samples_per_s:,.0f}"),
            ("training", f"{self.train_s:.2f} s of {self.total_s:.1f} s in all"),
            ("checkpoint", self.checkpoint),
            *[("log", self.log)] * bool(self.log),
        ]


def _said(loss: float | None) -> str:
    return "not returned by training_step" if loss is None else f"{loss:.4g}"
