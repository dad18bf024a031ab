"""Speeds of real devices that others measured and published, each with its source: 18,000 rows in
published.csv.gz.

benchmarks/published_speeds.py makes the table from checkouts of the two repositories that it
names.
"""

import csv
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from course_tools.estimate.chips import find_chip
from course_tools.estimate.counting.work import Work
from course_tools.estimate.known_networks import MERGED, networks
from course_tools.estimate.time.step_time import StepTime, step_time

TABLE = Path(__file__).parent / "published.csv.gz"
# How far off the estimate is on each source when neither its numbers nor its intervals knew of it:
# benchmarks/fit_evidence.py
LEFT_OUT = Path(__file__).parent / "left_out.csv"
# timm's runs with this PyTorch merged the parallel branches of RepVGG, MobileOne and the like into
# one convolution each (`--reparam` of its benchmark.py): the parameters that it published say so.
MERGED_WITH = "2.9.1"


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
    values: dict[str, Any] = {field.name: row[field.name] for field in fields(Speed)}
    for name in ("count", "image", "batch"):
        values[name] = int(row[name])
    for name in ("compiled", "training"):
        values[name] = row[name] == "1"
    values["samples_per_s"] = float(row["samples_per_s"])
    values["gmacs"] = float(row["gmacs"]) if row["gmacs"] else None
    return Speed(**values)


@cache
def sources() -> dict[str, dict[str, str]]:
    """Return the address, commit, date and licence of each source."""
    return dict(json.loads(_lines(TABLE)[0].removeprefix("# ")))


def work_of(row: Speed) -> Work | None:
    """Return the work of a step that somebody measured, or None where it was not counted."""
    half = row.precision in ("fp16", "bf16")
    name = row.model + MERGED if row.torch == MERGED_WITH else row.model
    network = networks().get((name, row.image, row.training, half))
    network = network or networks().get((row.model, row.image, row.training, half))
    if network is None:
        return None
    work = network.at(row.batch, row.precision)
    # NVIDIA trained and ran its ResNets in 16 bits with the channels last
    last = row.source == "DeepLearningExamples" and row.precision == "fp16"
    return replace(work, channels_last=last and not row.model.startswith("efficientnet"))


def estimate_published(row: Speed) -> StepTime | None:
    """Return the estimate for a step that somebody measured on one device.

    None where its network was not counted, or where several devices worked together.
    """
    work = work_of(row)
    if work is None or row.count != 1:
        return None
    return step_time(work, find_chip(row.device))


def _lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()
