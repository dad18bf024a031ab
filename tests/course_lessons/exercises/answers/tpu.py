"""Answers to the exercises of lesson 4."""

CONTEXT = """
import math

import numpy as np
import torch
from course_lessons.tpu import exercises as ex
"""

LOOP = """
def my_epoch(step, sync, batches):
    total = 0
    for batch in batches:
        {steps}
        {after}
    return {result}
"""
GOOD = {
    "steps": "total = total + step(batch)",
    "after": "sync()",
    "result": "total.item() / len(batches)",
}


def loop(**changes: str) -> str:
    """Return the right answer with some of its lines changed."""
    return LOOP.format(**{**GOOD, **changes})


WRONG = {
    "epoch": [
        (loop(steps="total += step(batch).item()", result="total / 10"), "had read 9 values"),
        (loop(steps="total += step(batch); message = f'so far {total}'"), "had read 9 values"),
        (loop(after="pass"), "never called `sync`"),
        (loop(after="pass", result="[sync(), total][1].item() / 10"), "In 9 places"),
        (loop(steps="total = step(batch)", result="total.item()"), "the last batch alone"),
        (loop(result="total.item()"), "That is the sum"),
        (loop(result="total / len(batches)"), "still a tensor"),
        (
            """
def my_epoch(step, sync, batches):
    losses = []
    for batch in batches:
        losses.append(step(batch))
        sync()
    return sum(loss.item() for loss in losses) / len(losses)
""",
            "10 values one by one",
        ),
        (loop().replace("in batches:", "in batches[:1]:"), "did 1 of them"),
    ],
    "room": [
        ("my_room = lambda length: length", "need 64 programs"),
        ("my_room = lambda length: 64", "only 51% of the rows are words"),
        ("my_room = lambda length: length // 16 * 16", "words are cut off"),
        ("my_room = lambda length: length // 16 * 16 + 16", "need 5 programs"),
        ("my_room = lambda length: math.ceil(length / 21.5) * 21.5", "not a whole number"),
    ],
    "fallback": [
        ("my_loss = ex.robust_loss", "Still a fallback: aten::huber_loss"),
        ("my_loss = lambda p, t: (p - t).abs().median()", "Still a fallback: aten::median"),
        ("my_loss = lambda p, t: ex.robust_loss(p.cpu(), t.cpu())", "fallback"),
        ("my_loss = lambda p, t: (p - t).mean() * (p - t).max().item()", "read values yourself"),
        ("my_loss = torch.nn.functional.smooth_l1_loss", "The loss is"),
        ("my_loss = lambda p, t: 0.5", "a tensor on the device"),
    ],
    "shard": [
        ('my_specs = ("model", None), (None, "data")', "holds 32 x 1024 of the batch"),
        ('my_specs = ("data", None), ("model", None)', "holds 512 x 512 of the weight"),
        ('my_specs = ("data", "data"), (None, "model")', "uses an axis twice"),
        ("my_specs = (4, 1), (1, 2)", "is not among them"),
        ('my_specs = ("data",), (None, "model")', "an entry for each dimension"),
    ],
}

RIGHT = {
    "epoch": [
        """
def my_epoch(step, sync, batches):
    losses = []
    for batch in batches:
        losses.append(step(batch))
        sync()
    return torch.stack(losses).mean().item()
""",
        loop(steps="sync()", after="total = total + step(batch).detach()"),
        loop(result="float(total.cpu() / len(batches))"),
    ],
    "room": [
        "my_room = lambda length: np.ceil(length / 16) * 16",
        "my_room = lambda length: max(16, 2 ** math.ceil(math.log2(length)))",
        "my_room = lambda length: min(size for size in (22, 43, 64) if size >= length)",
    ],
    "fallback": [
        """
def my_loss(predictions, targets):
    error = (predictions - targets).abs()
    outliers = torch.where(error < 1, error**2 / 2, error - 0.5).mean()
    return outliers + 0.01 * predictions.clamp(-3, 3).pow(2).mean() ** 0.5
""",
    ],
    "shard": ['my_specs = [["data", None], (None, "model")]'],
}
