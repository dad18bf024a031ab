"""Memory and speed of fine-tunings that others published, beside what is estimated."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from course_tools.estimate.answers import Answers
from course_tools.estimate.language.finetuning import estimate_finetuning

FILE = Path(__file__).parent / "finetuning.json"
BESIDE = ("source", "gb", "used_for", "counts", "tokens_per_s")  # all else is what was run


def published_errors(used_for: str) -> list[float]:
    """Return by how much the estimates of published figures are wrong, as shares of the figures.

    Args:
        used_for: "fit" or "test": what is fitted was chosen on the one half, without the other.
    """
    errors = []
    for row in _rows("published", used_for):
        memory = _estimated(row).memory
        only_tensors = row.get("counts") == "tensors"
        size = memory.tensors_bytes if only_tensors else memory.needed_bytes
        errors.append(abs(size / 1e9 / row["gb"] - 1))
    return errors


def published_speeds(used_for: str) -> list[tuple[float, float]]:
    """Return for each published speed the time that is estimated, as a share of it, and the factor.

    Args:
        used_for: "fit" or "test", as for `published_errors`.
    """
    found = []
    for row in _rows("published_speed", used_for):
        answer = _estimated(row).rows[0]
        tokens_per_s = answer.batch * row["length"] / answer.step_s
        found.append((row["tokens_per_s"] / tokens_per_s, answer.factor))
    return found


def _rows(table: str, used_for: str) -> list[dict[str, Any]]:
    return [row for row in published_finetunings()[table] if row["used_for"] == used_for]


def _estimated(row: dict[str, Any]) -> Answers:
    run = {name: value for name, value in row.items() if name not in BESIDE}
    device = run.pop("device", "A100")
    return estimate_finetuning(**run, devices=[device])


@cache
def published_finetunings() -> dict[str, Any]:
    """Return finetuning.json: the published figures, and their sources."""
    return dict(json.loads(FILE.read_text(encoding="utf-8")))
