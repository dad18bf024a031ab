"""Write the evidence of step_time.json: by kind of work, how far the model of time was off.

    python benchmarks/fit_evidence.py [--write]
    python benchmarks/fit_evidence.py --leave-out [--write]

The first groups the published measurements by kind of work. A factor is the largest of those within
which nine in ten of a source's measurements lie, so that a source with many rows does not outvote
the others. A reader's own work is one source more, so the factor is widened by `NEXT`, the less the
more sources were compared. Fewer than `SOURCES` sources, or `ROWS` rows, are "unchecked", and so is
a card whose own measurements are off by more than `OFF` in the middle. What hosts need for a launch
has an interval of its own.

The second leaves each source out in turn, of the evidence and of the fitted numbers, and asks how
far the estimate is off on it and how much of it lies inside the interval: left_out.csv, in half a
minute.
"""

import argparse
import csv
import json
import math
import statistics
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from fit_estimate import image_rows, language_rows, search

from course_tools.estimate.chips import Chip, find_chip
from course_tools.estimate.counting.work import Work
from course_tools.estimate.time.error_factor import error_factor, kind_of, precision_of
from course_tools.estimate.time.parallel import scaling
from course_tools.estimate.time.published import (
    LEFT_OUT,
    language_steps,
    published,
    published_steps,
    work_of,
)
from course_tools.estimate.time.step_time import (
    STEP_TIME_FILE,
    StepTime,
    fastest_host,
    fitted,
    numbers,
    slowest_host,
    step_time,
)

SOURCES, ROWS = 2, 4
# Seen when each source was left out: nine in ten inside wherever one source or more remained, if
# what was seen on k of them is widened by a factor whose logarithm is log(NEXT) / k.
NEXT = 1.5
FEW, LEAST, OFF = 1.5, 1.2, 1.3


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


def ratio(row: Measured) -> float:
    """Return the estimate over the measurement, of steps that launches limit beyond the range of
    what hosts need, which is a part of the interval by itself.
    """
    time, total_s = row.time()
    if row.count > 1 or time.limit != "launches":
        return total_s / row.measured_s
    fast, slow = (
        step_time(row.work, row.chip, host=host, compiled=row.compiled).total_s
        for host in (fastest_host(), slowest_host())
    )
    return min(max(row.measured_s, fast), slow) / row.measured_s


def evidence(rows: list[Measured]) -> list[dict]:
    """Return what was seen of each kind of work."""
    groups: dict = defaultdict(lambda: defaultdict(list))
    cards: dict = defaultdict(lambda: defaultdict(list))
    for row in rows:
        groups[row.key][row.source].append(abs(math.log(ratio(row))))
        cards[row.key][row.chip.name].append(ratio(row))
    return [entry(key, groups[key], cards[key]) for key in sorted(groups)]


def entry(key, sources, cards):
    """Return the evidence of one kind."""
    name, precision, training, compiled = key
    devices = sorted(cards)
    logs = [log for found in sources.values() for log in found]
    large = [found for found in sources.values() if len(found) >= 6]
    most = max(float(np.quantile(found, 0.9)) for found in [*large, logs])
    wider = [max(most, math.log(LEAST)), math.log(NEXT) / len(sources)]
    if len(logs) < ROWS:
        wider.append(math.log(FEW))
    how = f"{'training' if training else 'inference'} in {precision}"
    how += ", with torch.compile" if compiled else ""
    listed = " and ".join(sorted(sources)) if len(sources) < 3 else ", ".join(sorted(sources))
    about = f"{name}, {how}: compared with {_measurements(logs)} of {listed}"
    about += f" on {', '.join(devices)}"
    unchecked = len(sources) < SOURCES or len(logs) < ROWS
    if unchecked:
        about += "; by so few sources the factor is wider, and the answer unchecked"
    return ({"assumed": True} if unchecked else {}) | {
        "kind": name,
        "precision": precision,
        "training": training,
        "compiled": compiled,
        "factor": float(f"{math.exp(math.hypot(*wider)):.3g}"),
        "devices": devices,
        "about": about,
        "off": off_in_the_middle(cards),
    }


def off_in_the_middle(cards: dict[str, list[float]]) -> list[dict]:
    """Return the cards whose own measurements are off by more than `OFF` in the middle."""
    found = []
    for name in sorted(cards):
        middle = statistics.median(cards[name])
        factor = max(middle, 1 / middle)
        if factor > OFF:
            about = (
                f"the steps of {_measurements(cards[name])} on {name} took {1 / middle:.2f} times "
                f"the estimate in the middle, so the factor is wider, and the answer unchecked"
            )
            found.append(
                {"device": name, "factor": float(f"{factor:.3g}"), "assumed": True, "about": about}
            )
    return found


def _measurements(found: list[float]) -> str:
    """Return how many were found, in words."""
    return f"{len(found)} measurement{'s' if len(found) > 1 else ''}"


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
        "diffusers": {"attention": 1.0, "attention_old": 1.0},
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
    checked = error.checked and row.count == 1  # several GPUs are never said to be
    return Judged(row, off, 1 / error.upper <= off <= error.factor, checked)


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
        print(one["kind"], one["factor"], "unchecked" if "assumed" in one else "", one["about"])
    if asked.write:
        data = json.loads(STEP_TIME_FILE.read_text())
        data["evidence"] = found
        STEP_TIME_FILE.write_text(json.dumps(data, indent=2) + "\n")


if __name__ == "__main__":
    main()
