"""Write the evidence of step_time.json: by kind of work, how far the model of time was off.

    python tests/benchmarks/fit_evidence.py [--write]

A factor is the largest of those within which nine in ten of a source's measurements lie, so that a
source with many rows does not outvote the others. Where a kind has one source alone, or fewer than
four rows, the factor is widened by `ALONE` and `FEW`. What hosts need for
a launch has an interval of its own.
"""

import argparse
import json
import math
from collections import defaultdict

import numpy as np

from course_tools.estimate.chips import find_chip
from course_tools.estimate.time.error_factor import kind_of, precision_of
from course_tools.estimate.time.parallel import scaling
from course_tools.estimate.time.published import (
    language_steps,
    published,
    published_steps,
    work_of,
)
from course_tools.estimate.time.step_time import (
    STEP_TIME_FILE,
    fastest_host,
    slowest_host,
    step_time,
)

ALONE, FEW, LEAST = 1.15, 1.5, 1.25
# Counted before depthwise convolutions were a kind of their own.
DEPTHWISE = (
    "efficientnet",
    "mobilenet",
    "tf_efficientnet",
    "mnasnet",
    "fbnet",
    "ghostnet",
    "lcnet",
)
DEPTHWISE += ("tf_mobilenet", "mixnet", "convnext", "rexnet", "edgenext", "convmixer", "xception")


def rows():
    """Yield (kind, precision, training, compiled), source, device and estimated / measured."""
    for step in language_steps():
        chip = find_chip(step.device)
        if chip.vendor == "NVIDIA":
            yield (
                key(step.work, False),
                "NeuSight",
                chip.name,
                ratio(step.work, chip, step.measured_s),
            )
    for speed in published(count=1):
        work = None if speed.device.startswith("Core") else work_of(speed)
        if work:
            chip = find_chip(speed.device)
            kind, *rest = key(work, speed.compiled)
            if kind == "2-D convolutions" and speed.model.startswith(DEPTHWISE):
                kind = "depthwise convolutions"
            found = ratio(work, chip, speed.step_s, speed.compiled)
            yield (kind, *rest), speed.source, chip.name, found
    for step in published_steps():
        chip = find_chip(step.device)
        found = ratio(step.work, chip, step.measured_s, step.compiled, step.count)
        yield key(step.work, step.compiled), step.source, chip.name, found


def key(work, compiled):
    """Return what evidence is kept by."""
    return kind_of(work), precision_of(work), work.training, compiled


def ratio(work, chip, measured_s, compiled=False, count=1):
    """Return the estimate over the measurement, of steps that launches limit beyond the range of
    what hosts need, which is a part of the interval by itself.
    """
    if count > 1:
        return scaling(work, chip, counts=(count,), compiled=compiled).steps_s[0] / measured_s
    time = step_time(work, chip, compiled=compiled)
    if time.limit != "launches":
        return time.total_s / measured_s
    fast, slow = (
        step_time(work, chip, host=host, compiled=compiled).total_s
        for host in (fastest_host(), slowest_host())
    )
    return min(max(measured_s, fast), slow) / measured_s


def main():
    """Print the evidence, and write it if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep it in step_time.json")
    asked = parser.parse_args()
    groups = defaultdict(lambda: defaultdict(list))
    devices = defaultdict(set)
    for kind, source, device, found in rows():
        groups[kind][source].append(abs(math.log(found)))
        devices[kind].add(device)
    evidence = []
    for kind, sources in sorted(groups.items()):
        evidence.append(entry(kind, sources, sorted(devices[kind])))
        print(*kind, {k: len(v) for k, v in sources.items()}, evidence[-1]["factor"])
    if asked.write:
        data = json.loads(STEP_TIME_FILE.read_text())
        data["evidence"] = evidence
        STEP_TIME_FILE.write_text(json.dumps(data, indent=2) + "\n")


def entry(kind, sources, devices):
    """Return the evidence of one kind."""
    name, precision, training, compiled = kind
    logs = [log for found in sources.values() for log in found]
    large = [found for found in sources.values() if len(found) >= 6] or [logs]
    most = max(float(np.quantile(found, 0.9)) for found in [*large, logs])
    wider = [most, math.log(FEW) if len(logs) < 4 else 0.0]
    wider += [math.log(ALONE) if len(sources) == 1 else 0.0]
    factor = max(LEAST, math.exp(math.hypot(*wider)))
    how = f"{'training' if training else 'inference'} in {precision}"
    how += ", with torch.compile" if compiled else ""
    about = f"{name}, {how}: compared with {len(logs)} measurements of {', '.join(sorted(sources))}"
    few = {"assumed": True} if len(logs) < 4 else {}
    return few | {
        "kind": name,
        "precision": precision,
        "training": training,
        "compiled": compiled,
        "factor": float(f"{factor:.3g}"),
        "devices": devices,
        "about": f"{about} on {', '.join(devices)}",
    }


if __name__ == "__main__":
    main()
