"""What a launch came to."""

import json
import math
from dataclasses import asdict, dataclass

from course_utils.display.cards import html_card, text_table


@dataclass(frozen=True)
class RunResult:
    """What a launch came to."""

    lesson: str
    strategy: str  # how its processes were started, as requested
    ranks: int
    steps: int  # of the optimizer since the very first run, with those of the runs that it resumed
    losses: tuple[float, ...]  # the mean over the samples of all ranks, for each epoch since the very first run
    metrics: dict[str, float]  # what the lesson logged last
    samples_per_rank: tuple[int, ...]  # in the last epoch
    samples_per_s: float  # over all ranks in the fastest epoch of this run, without saving a checkpoint
    checkpoint: str  # the file to resume from
    train_s: float  # from the first step of this run to its last
    total_s: float  # from the command to the end of the last process

    def to_json(self) -> str:
        """Return the result as one JSON object, with null for a loss that is not a finite number."""
        data = asdict(self)
        data["losses"] = [loss if math.isfinite(loss) else None for loss in self.losses]
        data["metrics"] = {name: value if math.isfinite(value) else None for name, value in self.metrics.items()}
        return json.dumps(data)

    def __repr__(self) -> str:
        return text_table(*self._table())

    def _repr_html_(self) -> str:
        return html_card("Result", *self._table())

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        first, last = (self.losses[0], self.losses[-1]) if self.losses else (math.nan, math.nan)
        return ("lesson", f"{self.lesson}, {self.strategy}, {self.ranks} rank{'s' * (self.ranks > 1)}"), [
            ("loss", f"{first:.4g} in epoch 1, {last:.4g} in epoch {len(self.losses)}"),
            ("steps", str(self.steps)),
            ("samples per rank", ", ".join(map(str, self.samples_per_rank)) or "none in this run"),
            ("samples per s", f"{self.samples_per_s:,.0f}"),
            ("training", f"{self.train_s:.2f} s of {self.total_s:.1f} s in all"),
            ("checkpoint", self.checkpoint),
        ]
