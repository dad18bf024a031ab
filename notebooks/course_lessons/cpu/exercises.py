"""The exercises of lesson 1: an epoch to repair, and the overhead of a step of one's own."""

import copy
from math import isclose
from statistics import mean
from typing import Any

import torch
from torch import nn

from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.graphs import Graphs
from course_lessons.exercises.read_answer import number_of, same

INPUTS = torch.sin(torch.arange(38.0)).view(19, 2)
# The last batch is short, and its targets are the hardest.
TARGETS = torch.tensor([0.0] * 8 + [1.0] * 8 + [3.0] * 3).view(19, 1)
BATCHES = list(zip(INPUTS.split(8), TARGETS.split(8), strict=True))


@exercise(
    "What is left in the gradients after a step? And how much should a batch of 3 samples count "
    "beside one of 8?",
    "`optimizer.zero_grad()` after the step. Add up `loss.item() * len(inputs)`, and divide by the "
    "number of samples.",
    solution="""
        def my_epoch(model, optimizer, batches):
            total, samples = 0.0, 0
            for inputs, targets in batches:
                loss = mse_loss(model(inputs), targets)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                total += loss.item() * len(inputs)
                samples += len(inputs)
            return total / samples
    """,
    right="The short batch counts in proportion to its size. "
    "Find the two lines where train_in_view does the same.",
)
def one_epoch(answer: Any) -> Mistakes:
    """Repair my_epoch(model, optimizer, batches): remove three mistakes, and return the mean loss
    over all samples.
    """
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        model = nn.Linear(2, 1)
    weights, losses = _train(model, reset=True)
    added_up, _ = _train(model, reset=False)
    mine = copy.deepcopy(model)
    kept = Graphs().watch_calls(mine)
    returned = answer(mine, torch.optim.SGD(mine.parameters(), lr=0.1), list(BATCHES))
    yield (
        same(mine.weight, model.weight),
        "The weights are wrong: they never change. Keep forward, backward and step, and reset the "
        "gradients after the step, not between backward and step.",
    )
    yield (
        same(mine.weight, added_up),
        "Each batch adds its gradients to those of the earlier ones: reset them, zero_grad().",
    )
    yield (
        not same(mine.weight, weights),
        "The weights are wrong: keep forward, backward and step for each batch, in this order.",
    )
    yield (
        getattr(returned, "requires_grad", False) or max(kept, default=0) > 1,
        "The sum still holds the graph of every batch: add loss.item() or loss.detach() to it.",
    )
    given = number_of(returned, "the mean loss of the epoch")
    total = sum(loss * len(inputs) for loss, (inputs, _) in zip(losses, BATCHES, strict=True))
    yield (
        isclose(given, mean(losses), rel_tol=1e-4),
        "The last batch has 3 samples, the others 8: weight each loss by the size of its batch.",
    )
    yield (
        isclose(given, sum(losses) / len(INPUTS), rel_tol=1e-4),
        "Each loss is the mean of its batch already. Dividing their sum by the number of samples "
        "divides twice: multiply each by the size of its batch first.",
    )
    wrong = not isclose(given, total / len(INPUTS), rel_tol=1e-4)
    yield wrong, f"The steps are right, but {given:.4g} is not the mean loss of the samples."


def _train(model: nn.Linear, *, reset: bool) -> tuple[torch.Tensor, list[float]]:
    """Return the weights after an epoch, and the loss of each batch."""
    trained, losses = copy.deepcopy(model), []
    optimizer = torch.optim.SGD(trained.parameters(), lr=0.1)
    for inputs, targets in BATCHES:
        loss = nn.functional.mse_loss(trained(inputs), targets)
        loss.backward()
        optimizer.step()
        if reset:
            optimizer.zero_grad()
        losses.append(loss.item())
    return trained.weight, losses


@exercise(
    "The time is a fixed part plus a part for each window. "
    "How much longer did the additional windows take?",
    "A window costs `(many_s - few_s) / (many - few)` seconds. "
    "What is left of `few_s` without its `few` windows?",
    solution="""
        def my_overhead(few, few_s, many, many_s):
            each_s = (many_s - few_s) / (many - few)
            return few_s - few * each_s
    """,
    right="With `times = pictures.time_batches([16, 256])`, "
    "`my_overhead(16, times[16], 256, times[256])` is the overhead of a step on this machine, in "
    "seconds. A larger batch is nearly free as long as its work takes less than that.",
)
def overhead(answer: Any) -> Mistakes:
    """Write my_overhead(few, few_s, many, many_s): the part of a step's seconds that does not
    depend on its batch, from its times with `few` windows and with `many`.
    """
    for fixed_s, each_s, few, many in ((3e-6, 1e-9, 1_000, 1_000_000), (2e-3, 5e-6, 100, 400)):
        few_s, many_s = fixed_s + few * each_s, fixed_s + many * each_s
        given = number_of(answer(few, few_s, many, many_s), "the seconds that a step costs")
        if isclose(given, fixed_s, rel_tol=1e-3):
            continue
        yield isclose(given, each_s), "That is what one more window costs. What costs none at all?"
        yield isclose(given, few_s), "That is the small step as a whole, with its windows."
        yield (
            isclose(given, few_s - few * many_s / many),
            "many_s / many holds some of the fixed part too.",
        )
        yield True, f"Times of {few_s:g} s and {many_s:g} s have no fixed part of {given:g} s."
