"""What a launch came to."""

import html
import json
import math
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class RunResult:
    """What a launch came to.

    Attributes:
        lesson: what was trained.
        strategy: how its processes were started, as requested.
        ranks: how many processes trained it together.
        steps: optimizer steps since the very first run, with those of the runs it resumed.
        losses: the mean loss over the samples of all ranks, for each epoch since the very first run.
        metrics: what the lesson logged last.
        samples_per_rank: how many samples each rank trained on in the last epoch.
        samples_per_s: samples a second over all ranks in the fastest epoch of this run, without saving a checkpoint.
        checkpoint: the file to resume from.
        train_s: seconds from the first step of this run to its last.
        total_s: seconds that the launch took, from the command to the end of the last process.
    """

    lesson: str
    strategy: str
    ranks: int
    steps: int
    losses: tuple[float, ...]
    metrics: dict[str, float]
    samples_per_rank: tuple[int, ...]
    samples_per_s: float
    checkpoint: str
    train_s: float
    total_s: float

    def to_json(self) -> str:
        """Return the result as one JSON object, with null for a loss that is not a finite number."""
        return json.dumps(_finite(asdict(self)))

    def __repr__(self) -> str:
        return "\n".join(f"{name:<17} {value}" for name, value in self._rows())

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
            for name, value in self._rows()
        )
        return f"<table>{rows}</table>"

    def _rows(self) -> list[tuple[str, str]]:
        first, last = (self.losses[0], self.losses[-1]) if self.losses else (math.nan, math.nan)
        return [
            ("lesson", f"{self.lesson}, {self.strategy}, {self.ranks} ranks"),
            ("loss", f"{first:.4g} in epoch 1, {last:.4g} in epoch {len(self.losses)}"),
            ("steps", str(self.steps)),
            ("samples per rank", ", ".join(map(str, self.samples_per_rank)) or "none in this run"),
            ("samples per s", f"{self.samples_per_s:,.0f}"),
            ("training", f"{self.train_s:.2f} s of {self.total_s:.1f} s in all"),
            ("checkpoint", self.checkpoint),
        ]


def _finite(value):
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
