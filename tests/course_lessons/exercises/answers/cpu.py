"""Answers to the exercises of lesson 1."""

CONTEXT = """
import statistics

import numpy as np
import torch
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


FASTEST = "my_fastest = lambda seconds_with, counts: min(counts, key=lambda n: {key})"

RIGHT = {
    "one_epoch": [
        epoch(before="optimizer.zero_grad()", steps="loss.backward(); optimizer.step()"),
        epoch(
            before="model.zero_grad(set_to_none=False)", steps="loss.backward(); optimizer.step()"
        ),
        epoch(add="loss.detach() * len(inputs)"),
        """
class Epoch:
    def __call__(self, model, optimizer, batches):
        losses, sizes = [], []
        for x, y in batches:
            loss = ((model(x) - y) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            sizes.append(len(x))
        return np.average(losses, weights=sizes)


my_epoch = Epoch()
""",
        """
def my_epoch(model, optimizer, batches):
    squares = []
    for x, y in batches:
        errors = (model(x) - y).square()
        errors.mean().backward()
        optimizer.step()
        for parameter in model.parameters():
            parameter.grad = None
        squares.append(errors.detach())
    return torch.cat(squares).mean()
""",
    ],
    "overhead": [
        """
def my_overhead(few, few_s, many, many_s):
    slope, fixed = np.polyfit([few, many], [few_s, many_s], 1)
    return fixed
""",
        "my_overhead = lambda n, s, m, t: torch.tensor((m * s - n * t) / (m - n))",
    ],
    "fastest": [
        FASTEST.format(key="statistics.median(seconds_with(n) for _ in range(3))"),
        FASTEST.format(key="min(seconds_with(n) for _ in range(5))"),
        """
def my_fastest(seconds_with, counts):
    rounds = [[seconds_with(n) for n in counts] for _ in range(20)]
    return np.array(counts)[np.median(rounds, axis=0).argmin()]
""",
        """
def my_fastest(seconds_with, counts):
    best, best_s = None, float("inf")
    for n in counts:
        seconds_with(n)
        middle = torch.tensor([seconds_with(n) for _ in range(5)]).median()
        if middle < best_s:
            best, best_s = torch.tensor(n), middle
    return best
""",
    ],
}

WRONG = {
    "one_epoch": [
        (epoch(steps="loss.backward(); optimizer.step()"), "zero_grad()"),
        (
            epoch(steps="loss.backward(); optimizer.zero_grad(); optimizer.step()"),
            "No step had a gradient",
        ),
        (epoch(steps="optimizer.step()"), "No step had a gradient"),
        (epoch(steps="loss.backward()"), "was never called"),
        (
            epoch(steps="loss.backward(); torch.optim.SGD(model.parameters(), 0.1).step()"),
            "that you were given",
        ),
        (
            epoch(steps="loss.backward(); optimizer.mine.step(); optimizer.zero_grad()").replace(
                "total, samples",
                "optimizer.mine = torch.optim.SGD(model.parameters(), 0.1)\n    total, samples",
                1,
            ),
            "that you were given",
        ),
        (epoch(steps="loss.backward()", end="optimizer.step()"), "there were 1"),
        (epoch().replace("in batches:", "in batches[:-1]:"), "you left it out"),
        (epoch(reduction=', reduction="sum"'), "Take their mean"),
        (epoch(add="loss.item()", result="total / len(batches)"), "weight each loss"),
        (epoch(result="loss.item()"), "last batch alone"),
        (epoch(result="total"), "That is a sum"),
        (epoch(add="loss.item()", result="total"), "That is a sum"),
        (epoch().replace("mse_loss", "l1_loss"), "parameters differ"),
        (
            epoch(add="torch.nn.functional.mse_loss(model(inputs), targets).item() * len(inputs)"),
            "the mean loss before each step",
        ),
        (epoch(add="loss * len(inputs)"), "still holds the graph"),
        (epoch(result="None"), "the mean loss of the epoch"),
        (
            epoch(
                steps="loss.backward(); optimizer.step(); optimizer.step(); optimizer.zero_grad()"
            ),
            "there were 6",
        ),
    ],
    "overhead": [
        ("my_overhead = lambda n, s, m, t: (t - s) / (m - n)", "one more number"),
        ("my_overhead = lambda n, s, m, t: t - s", "took together"),
        ("my_overhead = lambda n, s, m, t: s - n * t / m", "some of the fixed part too"),
        ("my_overhead = lambda n, s, m, t: s", "take that away"),
        ("my_overhead = lambda n, s, m, t: s / n", "spreads the fixed part"),
        ("my_overhead = lambda n, s, m, t: 1e6 * (s - n * (t - s) / (m - n))", "in microseconds"),
        ("my_overhead = lambda n, s, m, t: t", "do not have a fixed part"),
        ("my_overhead = 3e-6", "should be a function"),
    ],
    "fastest": [
        ("my_fastest = lambda seconds_with, counts: max(counts)", "measured nothing"),
        (FASTEST.format(key="seconds_with(n)"), "lottery ticket"),
        (
            FASTEST.format(key="statistics.mean(seconds_with(n) for _ in range(9))"),
            "dominates the mean",
        ),
        (FASTEST.format(key="sum(seconds_with(n) for _ in range(100))"), "dominates the mean"),
        (
            "my_fastest = lambda seconds_with, counts: "
            "max(counts, key=lambda n: statistics.median(seconds_with(n) for _ in range(9)))",
            "less time is faster",
        ),
        (
            "my_fastest = lambda seconds_with, counts: "
            "min(statistics.median(seconds_with(n) for _ in range(9)) for n in counts)",
            "the number of threads itself",
        ),
        (
            "my_fastest = lambda seconds_with, counts: [seconds_with(8) for _ in range(9)]",
            "that you are given",
        ),
        (
            "my_fastest = lambda seconds_with, counts: [seconds_with(counts[0]) for _ in range(9)] and counts[0]",
            "only some of the counts",
        ),
    ],
}
