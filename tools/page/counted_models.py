"""Counted models by name, for the page "Is it worth it?"; no torch is needed."""

import csv
import gzip
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

MEMORY = Path(__file__).parent / "counted_memory.csv.gz"
LANGUAGE = Path(__file__).parent / "counted_language.json"


@cache
def counted_memory() -> Mapping[tuple[str, int, bool], list[tuple[float, float]]]:
    """Return the memory of image networks in 16 bits: by name, side of the image, and training.

    Each has a few lines (bytes held, bytes for each sample), of which the highest at a batch is
    what the tensors take; see `memory_model`. Training is with Adam.
    """
    text = gzip.decompress(MEMORY.read_bytes()).decode("utf-8")
    known = {}
    for row in csv.DictReader(text.splitlines()):
        lines = []
        for pair in row["lines"].split():
            held, per_sample = pair.split(":")
            lines.append((float(held), float(per_sample)))
        known[row["model"], int(row["image"]), row["training"] == "1"] = lines
    return known


@cache
def counted_language() -> Mapping[str, dict[str, Any]]:
    """Return the counted steps of language models; tools/count_language_models.py writes them."""
    return dict(json.loads(LANGUAGE.read_text(encoding="utf-8")))
