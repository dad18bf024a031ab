"""Published rates of language models that answer, beside what is estimated."""

import csv
import json
from pathlib import Path
from typing import Any

from course_tools.estimate.language.serving import estimate_serving

RATES = Path(__file__).parent / "published_serving.csv"
SOURCES = Path(__file__).parent / "serving_sources.json"


def sources() -> dict[str, str]:
    """Return where the rates come from."""
    return dict(json.loads(SOURCES.read_text(encoding="utf-8")))


def published_rates() -> list[dict[str, Any]]:
    """Return the published rates, each with the estimated one and its factor, in tokens/s."""
    with RATES.open(encoding="utf-8", newline="") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    for row in rows:
        asked = {name: int(row[name]) for name in ("bits", "batch", "prompt", "generated")}
        row |= asked | {"tokens_per_s": float(row["tokens_per_s"])}
        found = estimate_serving(
            row["model"], devices=[row["device"]], runtime=row["runtime"], **asked
        )
        answer = found.rows[0]
        rates = found.demand.rates(answer.machine.chip)
        row["estimated"], row["factor"] = {
            "prefill": (rates.prefill_tokens_per_s, rates.prefill_factor),
            "decode": (rates.decode_tokens_per_s, rates.decode_factor),
            "request": (row["batch"] * row["generated"] / answer.step_s, rates.decode_factor),
        }[row["measure"]]
    return rows
