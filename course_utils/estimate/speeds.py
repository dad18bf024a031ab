"""Speeds of real devices that others measured and published, each with its source: 18,000 rows in
published.csv.gz.

tools/published_measurements.py makes the table from checkouts of the two repositories that it
names.
"""

import csv
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from course_utils.estimate.chips import find_chip
from course_utils.estimate.steptime import StepTime, time_of

TABLE = Path(__file__).parent / "published.csv.gz"
COUNTED = Path(__file__).parent / "counted.csv.gz"


@dataclass(frozen=True)
class Speed:
    """One published speed.

    Attributes:
        source: the repository that published it.
        file: where in that repository.
        device: the chip's name, as in chips.json, or a CPU's.
        count: how many devices worked together.
        model: the network, by the name that pytorch-image-models gives it.
        image: side of the square image, in pixels.
        batch: samples in a step on each device.
        precision: "fp16" stands for automatic mixed precision.
        compiled: whether torch.compile was used.
        training: whether it was a training step; else it was a forward pass.
        torch: the version of PyTorch, or "" where the source does not say.
        samples_per_s: of all devices together.
        gmacs: 10^9 multiply-adds for one image, or None where the source does not say.
    """

    source: str
    file: str
    device: str
    count: int
    model: str
    image: int
    batch: int
    precision: str
    compiled: bool
    training: bool
    torch: str
    samples_per_s: float
    gmacs: float | None

    @property
    def step_s(self) -> float:
        """Seconds of one step."""
        return self.batch * self.count / self.samples_per_s


def published(**asked: object) -> list[Speed]:
    """Return the published speeds whose attributes are as asked, such as device="T4",
    training=False.

    Raises:
        AttributeError: a published speed has no such attribute.
    """
    return [
        row
        for row in _speeds()
        if all(getattr(row, name) == value for name, value in asked.items())
    ]


@cache
def _speeds() -> tuple[Speed, ...]:
    return tuple(_speed(row) for row in csv.DictReader(_lines(TABLE)[1:]))


def _speed(row: Mapping[str, str]) -> Speed:
    texts = {
        name: row[name] for name in ("source", "file", "device", "model", "precision", "torch")
    }
    whole = {name: int(row[name]) for name in ("count", "image", "batch")}
    flags = {name: row[name] == "1" for name in ("compiled", "training")}
    values: dict[str, Any] = {
        **texts,
        **whole,
        **flags,
        "gmacs": float(row["gmacs"]) if row["gmacs"] else None,
    }
    return Speed(**values, samples_per_s=float(row["samples_per_s"]))


@cache
def sources() -> dict[str, dict[str, str]]:
    """Return the address, commit, date and licence of each source."""
    return dict(json.loads(_lines(TABLE)[0].removeprefix("# ")))


@cache
def _counted() -> Mapping[tuple[str, int, bool, bool], tuple[float, ...]]:
    """Return what was counted of each network: batch, kernels, bytes, bytes of convolutions,
    operations.
    """
    known = {}
    # after a note and the header
    for model, image, training, half, *amounts in csv.reader(_lines(COUNTED)[2:]):
        known[model, int(image), training == "1", half == "1"] = tuple(map(float, amounts))
    return known


def estimate_published(row: Speed) -> StepTime | None:
    """Return the estimate for a step that somebody measured on one device, or None where its
    network was not counted.

    The counted bytes and operations grow with the batch, and the kernels do not.
    """
    known = _counted().get((row.model, row.image, row.training, row.precision in ("fp16", "bf16")))
    if known is None or row.count != 1:
        return None
    batch, kernels, *grows = known
    amounts = (kernels, *(amount * row.batch / batch for amount in grows))
    return time_of(amounts, find_chip(row.device), row.precision, training=row.training)


def _lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()
