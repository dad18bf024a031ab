"""Speeds of real devices that others measured and published, each with its source: 18,000 rows in
published.csv.gz.

tools/published_measurements.py makes the table from checkouts of the two repositories that it
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
from course_tools.estimate.counting.work import BOXES, OP_KINDS, Sums, Work
from course_tools.estimate.time.step_time import StepTime, step_time

TABLE = Path(__file__).parent / "published.csv.gz"
COUNTED = Path(__file__).parent / "counted_networks.csv.gz"
LANGUAGE_MODELS = Path(__file__).parent / "language_models.csv"
STEPS = Path(__file__).parent / "published_steps.csv"
# How far off the estimate is on each source when neither its numbers nor its intervals knew of it:
# benchmarks/fit_evidence.py
LEFT_OUT = Path(__file__).parent / "left_out.csv"
# timm's runs with this PyTorch merged the parallel branches of RepVGG, MobileOne and the like into
# one convolution each (`--reparam` of its benchmark.py): the parameters that it published say so.
MERGED_WITH = "2.9.1"
MERGED = ", merged"  # after the name of such a network in the counted ones


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


@dataclass(frozen=True)
class Network:
    """A counted network.

    Attributes:
        work: of a step at `work.batch` samples, without the optimizer.
        trained: numbers that the optimizer updates.
    """

    work: Work
    trained: float

    def at(self, batch: int, precision: str, pixels: float = 1.0) -> Work:
        """Return the work at another batch: what is per sample grows, the rest stays.

        Args:
            batch, precision: of the step.
            pixels: how many times as many an image has as when the network was counted.
        """
        factor = batch / self.work.batch * pixels
        kinds: dict[str, Any] = {}
        for kind, sums in self.work.kinds.items():
            kinds[kind] = sums.times(factor)
        if self.work.training:
            other = kinds["other"]
            update = 28 * self.trained  # bytes that Adam moves, see `counting.adam`
            moved = other.bytes_moved + update
            kinds["other"] = Sums(other.flops, moved, other.kernels + 1)
        kinds |= {name: factor * getattr(self.work, name) for name in ("serial", "unaligned")}
        return replace(self.work, batch=batch, precision=precision, **kinds)


@cache
def networks() -> Mapping[tuple[str, int, bool, bool], Network]:
    """Return the counted networks by name, side of the image, training and 16 bits."""
    known = {}
    for row in csv.DictReader(_lines(COUNTED)[1:]):
        training, half = row["training"] == "1", row["half"] == "1"
        known[row["model"], int(row["image"]), training, half] = _network(row, training, half)
    return known


def _network(row: Mapping[str, str], training: bool, half: bool) -> Network:
    work = Work(
        batch=int(row["batch"]),
        parameters=int(row["parameters"]),
        training=training,
        precision="fp16" if half else "fp32",
        serial=float(row.get("serial") or 0),
        unaligned=float(row.get("unaligned") or 0),
        **_sums(row),
    )
    return Network(work, float(row["trained"] or 0))


def _sums(row: Mapping[str, str]) -> dict[str, Any]:
    """Return the sums of each kind; what a table has no column for is 0."""
    kinds = {}
    for kind in OP_KINDS:
        names = (f"{kind}_{amount}" for amount in ("flops", "bytes", "kernels"))
        kinds[kind] = Sums(*(float(row.get(name) or 0) for name in names))
    return kinds


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


@dataclass(frozen=True)
class LanguageStep:
    """A step of a language model that NeuSight's authors measured, and what was predicted for it.

    The steps are in fp32, forward, or forward and backward without an optimizer, with attention in
    steps: S. Lee, A. Phanishayee and D. Mahajan, Forecasting GPU Performance for Deep Learning
    Training and Inference (ASPLOS 2025).

    Attributes:
        device: the chip's name, as in chips.json.
        model: NeuSight's name of it.
        tokens: in a sample.
        measured_s: seconds of the step.
        predicted_s: seconds by method: "NeuSight", "Habitat", "Li et al.", "roofline" as published
            there, and "ours", with that card left out of the fit where it is one of NVIDIA's. Its
            own measured rate of matrix products, in chips.json, is still used.
        work: the counted step.
    """

    device: str
    model: str
    tokens: int
    measured_s: float
    predicted_s: Mapping[str, float]
    work: Work


@cache
def language_steps() -> tuple[LanguageStep, ...]:
    """Return the measured steps of language models; the file's first line names their source."""
    lines = LANGUAGE_MODELS.read_text(encoding="utf-8").splitlines()
    return tuple(_language_step(row) for row in csv.DictReader(lines[1:]))


def _language_step(row: Mapping[str, str]) -> LanguageStep:
    methods = ("NeuSight", "Habitat", "Li et al.", "roofline", "ours")
    return LanguageStep(
        device=row["device"],
        model=row["model"],
        tokens=int(row["tokens"]),
        measured_s=float(row["measured_s"]),
        predicted_s={name: float(row[name]) for name in methods if row[name]},
        work=Work(
            batch=int(row["batch"]),
            parameters=int(row["parameters"]),
            training=row["training"] == "1",
            precision="fp32",
            **_sums(row),
        ),
    )


@dataclass(frozen=True)
class PublishedStep:
    """A published step of another kind of network, counted from a network that we wrote like it.

    Attributes:
        source: its key in the first line of published_steps.csv, with address, commit and file.
        model: what was computed.
        device: the chip's name.
        count: how many worked together.
        compiled: whether torch.compile was used.
        measured_s: seconds of a step.
        work: the counted step of one device.
    """

    source: str
    model: str
    device: str
    count: int
    compiled: bool
    measured_s: float
    work: Work


@cache
def published_steps() -> tuple[PublishedStep, ...]:
    """Return published steps of language models, U-Nets, detectors and others."""
    lines = STEPS.read_text(encoding="utf-8").splitlines()
    return tuple(_published_step(row) for row in csv.DictReader(lines[1:]))


def _published_step(row: Mapping[str, str]) -> PublishedStep:
    work = Work(
        batch=int(row["batch"]),
        parameters=int(row["parameters"]),
        training=row["training"] == "1",
        precision=row["precision"],
        channels_last=row["channels_last"] == "1",
        unaligned=float(row["unaligned"] or 0),
        assumed=(BOXES,) if row["model"].startswith("SSD") else (),
        **_sums(row),
    )
    return PublishedStep(
        source=row["source"],
        model=row["model"],
        device=find_chip(row["device"]).name,
        count=int(row["count"]),
        compiled=row["compiled"] == "1",
        measured_s=float(row["measured_s"]),
        work=work,
    )


def _lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()
