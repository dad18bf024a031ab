"""Speeds of real devices that others measured and published, as tools/published_measurements.py collects them."""

import csv
import gzip
import io
import json
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "published.csv.gz"


def published(**asked: str | int) -> list[dict[str, str]]:
    """Return the published rows whose columns are as asked, such as `published(device="T4", model="resnet50")`.

    Columns: source, file, device, count, model, image, batch, precision, compiled (0 or 1), training (0 or 1), torch,
    samples_per_s, gmacs, mega_activations. The file names a row's measurement in its source; see `sources`.

    Raises:
        FileNotFoundError: the table is not there; the message says how to make it.
    """
    return [row for row in _table()[1] if all(row[key] == str(value) for key, value in asked.items())]


def sources() -> dict[str, Any]:
    """Return address, commit, date and licence of each source."""
    return dict(_table()[0])


@cache
def _table() -> tuple[dict[str, Any], list[dict[str, str]]]:
    if not DATA.exists():
        raise FileNotFoundError(
            f"the table of published measurements is not at {DATA}. Make it from checkouts of its two public sources "
            "with tools/published_measurements.py, whose first lines say how."
        )
    about, text = gzip.decompress(DATA.read_bytes()).decode().split("\n", 1)
    return json.loads(about.removeprefix("# ")), list(csv.DictReader(io.StringIO(text)))
