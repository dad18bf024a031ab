"""Answers to the exercises of lesson 1."""

CONTEXT = """
import statistics

import numpy as np
import torch

from course_utils.data import Scale, air_passengers, make_windows

train, validation = air_passengers()
scale = Scale.fit(train)
scaled = scale.apply(train)
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
ALL = "torch.cat([train, validation])"

RIGHT = {
    "windows": [
        """
low, high = train.min(), train.max()
series = ((train - low) / (high - low)).numpy()
my_windows = [
    np.stack([series[i : i + 12] for i in range(109)])[..., None],
    np.stack([series[i + 1 : i + 13] for i in range(109)])[..., None],
]
""",
        "w = scaled.unfold(0, 13, 1); my_windows = w[:, :12, None], w[:, 1:, None]",
        "my_windows = make_windows(Scale.fit(train).apply(train).double(), 12)",
    ],
    "one_epoch": [
        epoch(before="optimizer.zero_grad()", steps="loss.backward(); optimizer.step()"),
        epoch(before="model.zero_grad(set_to_none=False)", steps="loss.backward(); optimizer.step()"),
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
    "windows": [
        ("my_windows = make_windows(scaled, length=20)", "still 20 months long"),
        ("my_windows = make_windows(train, length=12)", "trains best on small numbers"),
        (f"my_windows = make_windows(Scale.fit({ALL}).apply(train), length=12)", "leakage"),
        (f"my_windows = make_windows(scale.apply({ALL}), length=12)", "were kept aside"),
        ("my_windows = make_windows(scaled, length=12)[0]", "should be a pair"),
        ("my_windows = (make_windows(scaled, 12)[0],) * 2", "its own input"),
        ("my_windows = make_windows(scaled, 12)[::-1]", "in their order"),
        ("i, t = make_windows(scaled, 12); my_windows = i[..., 0], t[..., 0]", "last dimension"),
        ("i, t = make_windows(scaled, 12); my_windows = i[:-1], t[:-1]", "not 108"),
        ("w = scaled[:120].view(10, 12, 1); my_windows = w, w", "Windows overlap"),
        ("i, t = make_windows(scaled, 12); my_windows = i, t.flip(1)", "one month later"),
        ('my_windows = ("inputs", "targets")', "should be tensors"),
        ("my_windows = make_windows(scaled, length=13)", "it should be (109, 12, 1)"),
    ],
    "one_epoch": [
        (epoch(steps="loss.backward(); optimizer.step()"), "zero_grad()"),
        (epoch(steps="loss.backward(); optimizer.zero_grad(); optimizer.step()"), "there was no gradient"),
        (epoch(steps="optimizer.step()"), "there was no gradient"),
        (epoch(steps="loss.backward()"), "nothing was learned"),
        (epoch(steps="loss.backward()", end="optimizer.step()"), "there were 1"),
        (epoch().replace("in batches:", "in batches[:-1]:"), "you left it out"),
        (epoch(reduction=', reduction="sum"'), "Take their mean"),
        (epoch(add="loss.item()", result="total / len(batches)"), "weigh each loss"),
        (epoch(result="loss.item()"), "last batch alone"),
        (epoch(result="total"), "That is a sum"),
        (epoch(add="loss.item()", result="total"), "That is a sum"),
        (epoch().replace("mse_loss", "l1_loss"), "end elsewhere"),
        (
            epoch(add="torch.nn.functional.mse_loss(model(inputs), targets).item() * len(inputs)"),
            "the mean of the losses that made them",
        ),
        (epoch(add="loss * len(inputs)"), "still holds the graph"),
        (epoch(result="None"), "the mean loss of the epoch"),
        (epoch(steps="loss.backward(); optimizer.step(); optimizer.step(); optimizer.zero_grad()"), "there were 6"),
    ],
    "fastest": [
        ("my_fastest = lambda seconds_with, counts: max(counts)", "measured nothing"),
        (FASTEST.format(key="seconds_with(n)"), "lottery ticket"),
        (FASTEST.format(key="statistics.mean(seconds_with(n) for _ in range(9))"), "rules the mean"),
        (FASTEST.format(key="sum(seconds_with(n) for _ in range(100))"), "rules the mean"),
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
        ("my_fastest = lambda seconds_with, counts: [seconds_with(8) for _ in range(9)]", "that you are given"),
        (
            "my_fastest = lambda seconds_with, counts: [seconds_with(counts[0]) for _ in range(9)] and counts[0]",
            "only some of the counts",
        ),
    ],
}
