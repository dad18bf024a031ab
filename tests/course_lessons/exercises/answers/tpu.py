"""Answers to the exercises of lesson 5."""

CONTEXT = """
import numpy as np
import torch
from course_lessons.tpu import exercises as ex

lengths = list(range(1, 65))
"""

WRONG = {
    "buckets": [
        ("my_buckets = lengths, range(1, 65)", "64 programs"),
        ("my_buckets = lengths, [64]", "more than half the padding"),
        ("my_buckets = lengths, [16, 32, 48]", "48 cuts it off"),
        ("my_buckets = [16, 32, 48, 64]", "a pair, your lengths and your sizes"),
        ("my_buckets = lengths, 64", "a list of sizes"),
        ("my_buckets = lengths, []", "at least one length and one size"),
        ("my_buckets = [0, 5], [5]", "leave it out"),
    ],
    "fallback": [
        ("my_loss = lambda p, t: (p - t).abs().median()", "still falls back"),
        ("my_loss = lambda p, t: ex.robust_loss(p.cpu(), t.cpu())", "still falls back"),
        ("my_loss = lambda p, t: (p - t).mean() * (p - t).max().item()", "read values yourself"),
        ("my_loss = torch.nn.functional.smooth_l1_loss", "The loss is"),
        ("my_loss = lambda p, t: 0.5", "a tensor on the device"),
    ],
}

RIGHT = {
    "buckets": [
        "my_buckets = lengths, (16, 32, 48, 64)",
        "my_buckets = torch.tensor(lengths), np.array([22, 43, 64])",
        "my_buckets = [5, 5, 5], [5]",
    ],
    "fallback": [
        """
def my_loss(predictions, targets):
    error = (predictions - targets).abs()
    outliers = torch.where(error < 1, error**2 / 2, error - 0.5).mean()
    return outliers + 0.01 * predictions.clamp(-3, 3).pow(2).mean() ** 0.5
"""
    ],
}
