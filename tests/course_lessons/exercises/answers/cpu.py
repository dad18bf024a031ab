"""Answers to the exercises of lesson 1."""

CONTEXT = """
import statistics

import numpy as np
import torch
from torch.nn.functional import mse_loss
"""

EPOCH = """
def my_epoch(model, optimizer, batches):
    total, samples = 0.0, 0
    for inputs, targets in batches:
        {before}
        loss = torch.nn.functional.mse_loss(model(inputs), targets{reduction})
        {steps}
        total += {add}
        samples += len(inputs)
    {end}
    return {result}
"""
GOOD = {
    "before": "pass",
    "reduction": "",
    "steps": "loss.backward(); optimizer.step(); optimizer.zero_grad()",
    "add": "loss.item() * len(inputs)",
    "end": "pass",
    "result": "total / samples",
}


def epoch(**changes: str) -> str:
    return EPOCH.format(**{**GOOD, **changes})


RIGHT = {
    "one_epoch": [
        epoch(before="optimizer.zero_grad()", steps="loss.backward(); optimizer.step()"),
        epoch(
            before="model.zero_grad(set_to_none=False)", steps="loss.backward(); optimizer.step()"
        ),
        epoch(add="loss.detach() * len(inputs)"),
        epoch(add="len(inputs) * loss.detach().item()", result="total / 19"),
    ],
    "overhead": [
        """
def my_overhead(few, few_s, many, many_s):
    slope, fixed = np.polyfit([few, many], [few_s, many_s], 1)
    return fixed
""",
        "my_overhead = lambda n, s, m, t: torch.tensor((m * s - n * t) / (m - n))",
    ],
}

WRONG = {
    "one_epoch": [
        (epoch(steps="loss.backward(); optimizer.step()"), "zero_grad()"),
        (epoch(steps="optimizer.step()"), "The weights are wrong"),
        (epoch().replace("in batches:", "in batches[:-1]:"), "The weights are wrong"),
        (epoch(add="loss.item()", result="total / len(batches)"), "weight each loss"),
        (epoch(add="loss * len(inputs)", end="total = total.item()"), "holds the graph"),
        (
            epoch(steps="loss.backward(); optimizer.zero_grad(); optimizer.step()"),
            "not between backward and step",
        ),
        (epoch(add="loss.item()"), "divides twice"),
        (epoch(result="total"), "not the mean loss of the samples"),
    ],
    "overhead": [
        ("my_overhead = lambda n, s, m, t: (t - s) / (m - n)", "one more window"),
        ("my_overhead = lambda n, s, m, t: s - n * t / m", "some of the fixed part too"),
        ("my_overhead = lambda n, s, m, t: s", "with its windows"),
        ("my_overhead = lambda n, s, m, t: s / n", "have no fixed part of"),
    ],
}
