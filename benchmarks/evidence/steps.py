"""Published steps of language models, U-Nets and detectors, with what was counted of each."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from course_tools.estimate.chips import find_chip
from course_tools.estimate.counting.work import Work
from course_tools.estimate.known_networks import sums_of

LANGUAGE_MODELS = Path(__file__).parent / "language_models.csv"
STEPS = Path(__file__).parent / "published_steps.csv"


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
            **sums_of(row),
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
        detects=row["model"].startswith("SSD"),
        **sums_of(row),
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
