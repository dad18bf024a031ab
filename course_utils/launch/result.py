"""The result of a launch."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from course_utils.atomic_write import write_atomically
from course_utils.tables import text_table
from course_utils.units import format_seconds


@dataclass(frozen=True)
class RunResult:
    """The losses, time and checkpoint of a launch."""

    training: str
    strategy: str
    accelerator: str  #: "cpu" or "gpu"
    ranks: int
    losses: list[float]  #: `train_loss` of each epoch, including those before a resume
    train_s: float  #: from the first step of this run to its last
    checkpoint: str  #: the file that `resume` continues from

    def save(self, path: Path) -> None:
        """Write the result as JSON."""
        write_atomically(path, json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> "RunResult":
        """Read a result that `save` has written.

        Raises:
            ValueError: the file holds something else.
        """
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (TypeError, ValueError):
            raise ValueError(f"{path} is not the result of a launch, or not a whole one.") from None

    def __repr__(self) -> str:
        ranks = "1 rank" if self.ranks == 1 else f"{self.ranks} ranks"
        rows = [("steps took", format_seconds(self.train_s)), ("checkpoint", self.checkpoint)]
        if self.losses:
            losses = f"{self.losses[0]:.4g} in epoch 1"
            if len(self.losses) > 1:
                losses += f", {self.losses[-1]:.4g} in epoch {len(self.losses)}"
            rows.insert(0, ("train_loss", losses))
        how = f"{self.training}, {self.strategy}, {ranks} on {self.accelerator}"
        return text_table(("training", how), rows)
