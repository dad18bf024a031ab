"""Write the evidence of step_time.json: of which work on which cards measurements were published.

    python benchmarks/fit_evidence.py [--write]
    python benchmarks/fit_evidence.py --leave-out [--write]

The first groups the published measurements by kind of work, step and precision. A card whose own
measurements are off by more than `OFF` in the middle is "off" for that group. The second leaves
each source out in turn, of the evidence and of the fitted numbers, and asks how far the estimate is
off on it and how much of it lies inside the interval: left_out.csv, in half a minute.
"""

import argparse
import csv
import math
import statistics
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from course_lessons.evidence.published import LEFT_OUT, published, work_of
from evidence.steps import language_steps, published_steps
from fit_estimate import image_rows, language_rows, save, search

from course_tools.estimate.chips import Chip, find_chip
from course_tools.estimate.counting.work import Work
from course_tools.estimate.time.error_factor import error_factor, kind_of, precision_of
from course_tools.estimate.time.parallel import scaling
from course_tools.estimate.time.step_time import (
    StepTime,
    fitted,
    numbers,
    step_time,
)

OFF = 1.3


@dataclass(frozen=True)
class Measured:
    """A published measurement of a counted step."""

    source: str
    kind: str
    work: Work
    chip: Chip
    compiled: bool
    count: int
    measured_s: float

    @property
    def key(self) -> tuple[str, str, bool, bool]:
        """What evidence is kept by."""
        return self.kind, precision_of(self.work), self.work.training, self.compiled

    def time(self) -> tuple[StepTime, float]:
        """Return the estimate of one device, and the seconds with all of them."""
        one = step_time(self.work, self.chip, compiled=self.compiled)
        if self.count == 1:
            return one, one.total_s
        several = scaling(self.work, self.chip, counts=(self.count,), compiled=self.compiled)
        return one, several.steps_s[0]


@dataclass(frozen=True)
class Judged:
    """A measurement, estimated / measured, and what the answer says."""

    row: Measured
    off: float
    inside: bool
    checked: bool


def measurements() -> list[Measured]:
    """Return all published measurements of counted steps on NVIDIA's cards."""
    found = []
    for step in language_steps():
        chip = find_chip(step.device)
        if chip.vendor == "NVIDIA":
            kind = kind_of(step.work)
            found.append(Measured("NeuSight", kind, step.work, chip, False, 1, step.measured_s))
    for speed in published(count=1):
        work = None if speed.device.startswith("Core") else work_of(speed)
        if work:
            kind, chip, compiled = kind_of(work), find_chip(speed.device), speed.compiled
            found.append(Measured(speed.source, kind, work, chip, compiled, 1, speed.step_s))
    for step in published_steps():
        kind, chip, work = kind_of(step.work), find_chip(step.device), step.work
        counted = step.compiled, step.count, step.measured_s
        found.append(Measured(step.source, kind, work, chip, *counted))
    return found


def ratio(row: Measured) -> float | None:
    """Return the estimate over the measurement, or None for a step that launches limit: hosts
    differ, and have an allowance of their own.
    """
    time, total_s = row.time()
    return None if time.limit == "launches" else total_s / row.measured_s


def evidence(rows: list[Measured]) -> list[dict]:
    """Return which cards were seen with each kind of work, step and precision."""
    groups: dict = defaultdict(list)
    for row in rows:
        groups[row.key].append(row)
    return [entry(key, groups[key]) for key in sorted(groups)]


def entry(key, rows):
    """Return the evidence of one kind, step and precision."""
    kind, precision, training, compiled = key
    cards = defaultdict(list)
    for row in rows:
        cards[row.chip.name] += filter(None, [ratio(row)])
    middles = {name: statistics.median(found or [1.0]) for name, found in cards.items()}
    by_whom = {
        name: sorted({row.source for row in rows if row.chip.name == name}) for name in cards
    }
    off = {name for name, middle in middles.items() if max(middle, 1 / middle) > OFF}
    return {
        "kind": kind,
        "precision": precision,
        "training": training,
        "compiled": compiled,
        "measurements": len(rows),
        "sources": sorted({row.source for row in rows}),
        "devices": {name: by_whom[name] for name in sorted(set(cards) - off)},
        "off": {name: by_whom[name] for name in sorted(off)},
    }


def numbers_without(source: str, known: dict[str, float]) -> dict[str, float]:
    """Return the fitted numbers without a source: of the others, or as if nobody knew better."""
    language = [row for rows in language_rows().values() for row in rows]
    images = image_rows(5, device="RTX 3090", training=False)
    nvidia = {"source": "DeepLearningExamples", "training": False}
    if source == "NeuSight":
        together = ["arithmetic", "memory", "convolution_memory"]
        return search([images], known, together, rounds=1)
    if source == "pytorch-image-models":
        values = search([language], known, ["arithmetic", "memory"], rounds=1)
        half, single = (
            [row for row in image_rows(precision=name, **nvidia) if row[0].batch >= 16]
            for name in ("fp16", "fp32")
        )
        values = search([half], values, ["convolution_memory"], rounds=1)
        values = search([single], values, ["convolution_fp32"], rounds=1)
        return values | {"convolution_training": 1.0, "compiled": known["compiled_training"]}
    others = {  # without it nobody would have known of these
        "DeepLearningExamples": {
            "convolution_fp32": known["arithmetic"],
            "convolution_training_32": 1.0,
            # the smallest batch of diffusers on the A100: 43 ms of 1,196 kernels
            "launch_s": 3.4e-5,
            "step_s": 1e-9,
        },
        "diffusers": {"attention": 1.0},
        "llm-foundry": {"doubling": 1.03},  # of the DGX of DeepLearningExamples
        "LLMs-from-scratch": {"compiled_training": known["compiled"], "unaligned": 1.0},
        "mmaction2": {"convolution3d": 1.0},
    }
    return known | others.get(source, {})


def leave_out(rows: list[Measured]) -> list[Judged]:
    """Return how far off the estimates of each source are when neither the numbers nor the evidence
    knew of it.
    """
    known, kept = dict(numbers()), fitted()["evidence"]
    found = []
    for source in sorted({row.source for row in rows}):
        numbers().update(numbers_without(source, known))
        fitted()["evidence"] = evidence([row for row in rows if row.source != source])
        found += [judge(row) for row in rows if row.source == source]
        numbers().update(known)
    fitted()["evidence"] = kept
    return found


def judge(row: Measured) -> Judged:
    """Return how far off an estimate is, and what the answer says of it."""
    time, total_s = row.time()
    error = error_factor(row.work, row.chip, time, compiled=row.compiled)
    off = total_s / row.measured_s
    return Judged(row, off, 1 / error.upper <= off <= error.factor, error.checked)


def summary(name: str, judged: list[Judged]) -> dict:
    """Return a row of left_out.csv."""
    off = [one.off for one in judged]
    checked = [one.inside for one in judged if one.checked]
    most = math.exp(np.quantile(np.abs(np.log(off)), 0.9))
    return {
        "source": name,
        "n": len(off),
        "mean_error": f"{statistics.fmean(abs(one - 1) for one in off):.3f}",
        "nine_in_ten_within": f"{most:.2f}",
        "bias": f"{statistics.median(off):.2f}",
        "inside": f"{statistics.fmean(one.inside for one in judged):.2f}",
        "checked": len(checked),
        "checked_inside": f"{statistics.fmean(checked):.2f}" if checked else "",
    }


def by(name, judged: list[Judged]) -> list[dict]:
    """Return a summary for each group that has the same `name(row)`."""
    groups = defaultdict(list)
    for one in judged:
        groups[name(one.row)].append(one)
    return [summary(group, groups[group]) for group in sorted(groups)]


def kind_and_class(row: Measured) -> str:
    """Return the kind of work, what was done and on which class of card."""
    step = "several" if row.count > 1 else "training" if row.work.training else "inference"
    compiled = "compiled " if row.compiled else ""
    card = "GeForce" if row.chip.name.startswith("RTX") else row.chip.name.split()[0]
    return f"{row.kind}, {compiled}{step}, {card}"


def main():
    """Print the evidence or the sources left out, and keep them if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leave-out", action="store_true", help="leave each source out in turn")
    parser.add_argument("--write", action="store_true", help="keep the result")
    asked = parser.parse_args()
    rows = measurements()
    if asked.leave_out:
        judged = leave_out(rows)
        small = [one for one in judged if one.row.source != "pytorch-image-models"]
        found = by(lambda row: row.source, judged)
        found += [summary("all but pytorch-image-models", small), summary("all", judged)]
        for one in [*found, *by(kind_and_class, [judge(row) for row in rows])]:
            print(*one.values(), sep="\t")
        print("left out")
        for one in by(kind_and_class, judged):
            print(*one.values(), sep="\t")
        if asked.write:
            with LEFT_OUT.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, found[0], lineterminator="\n")
                writer.writeheader()
                writer.writerows(found)
        return
    found = evidence(rows)
    for one in found:
        print(*one.values(), sep="\t")
    if asked.write:
        save(fitted() | {"evidence": found})


if __name__ == "__main__":
    main()
