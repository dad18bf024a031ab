"""What several tests of the estimate ask, and how they read the answers."""

from dataclasses import replace

import torch
from torch import nn

from course_tools.estimate.time.step_time import StepTime

MODEL, X = nn.Linear(4096, 4096), torch.empty(1, 4096)
WHOLE = {"batch": 8192, "samples": 10**8}  # a job of hours


def lasting(row, hours):
    """Return a row whose job takes so many hours, within a factor of 1.5."""
    parts = StepTime(0.0, 0.0, 1.0)
    evidence = replace(row.evidence, factor=1.5, slower=None)
    samples = int(hours * 3600 * row.batch)
    return replace(row, step_s=1.0, samples=samples, parts=parts, evidence=evidence)


def one_line(text):
    return " ".join(text.split())


def plain(found):
    """Return what is shown, without the breaks of its lines."""
    return one_line(repr(found))
