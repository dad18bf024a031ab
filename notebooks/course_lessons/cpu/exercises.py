"""The exercises of lesson 1: one epoch by hand, and the cost of a step whatever its batch."""

import copy
import math
import statistics
from functools import partial
from typing import Any

import torch

from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.read_answer import number_of, same

INPUTS = torch.sin(torch.arange(38.0)).view(19, 2)
TARGETS = INPUTS.sum(1, keepdim=True) + torch.tensor([0.0] * 8 + [1.0] * 8 + [3.0] * 3).view(19, 1)
# the last one is short, and the hardest
BATCHES = list(zip(INPUTS.split(8), TARGETS.split(8), strict=True))
MODEL = torch.nn.utils.skip_init(torch.nn.Linear, 2, 1)  # draws no random numbers
MODEL.load_state_dict({"weight": torch.tensor([[0.5, -0.25]]), "bias": torch.zeros(1)})


@exercise(
    "Forward, backward, step, reset, for each batch. "
    "And 3 hard samples must not count as much as 8 easy ones.",
    "Add up `loss.item() * len(inputs)` and the samples, divide at the end, "
    "and reset with `optimizer.zero_grad()`.",
    solution="""
        def my_epoch(model, optimizer, batches):
            total, samples = 0.0, 0
            for inputs, targets in batches:
                loss = torch.nn.functional.mse_loss(model(inputs), targets)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                total += loss.item() * len(inputs)
                samples += len(inputs)
            return total / samples
    """,
    right="The short batch counted in proportion to its size. "
    "Find the two lines where train_in_view does the same.",
)
def one_epoch(answer: Any) -> Mistakes:
    """Write my_epoch(model, optimizer, batches): a step for each pair (inputs, targets); return the
    epoch's mean squared error over all samples.
    """
    model, steps = copy.deepcopy(MODEL), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.register_step_post_hook(lambda *_: steps.append(1))
    returned = answer(
        model, optimizer, [(inputs.clone(), targets.clone()) for inputs, targets in BATCHES]
    )
    yield (
        not steps,
        "optimizer.step() was never called: the optimizer that you were given did nothing.",
    )
    weights, losses = _reference(BATCHES)
    if not same(model.weight.detach(), weights, within=1e-5):
        yield from _compare_weights(model.weight.detach(), len(steps))
    yield (
        getattr(returned, "requires_grad", False),
        "This loss still holds the graph of its gradients: use .item().",
    )
    mean = number_of(returned, "the mean loss of the epoch")
    near = partial(math.isclose, mean, rel_tol=1e-4)
    total = sum(loss * len(inputs) for loss, (inputs, _) in zip(losses, BATCHES, strict=True))
    yield (
        near(statistics.mean(losses)),
        "The last batch has 3 samples, others 8: weight each loss by its batch's size.",
    )
    yield near(losses[-1]), "That is the loss of the last batch alone."
    yield near(sum(losses)) or near(total), "That is a sum: divide by the number of samples."
    yield (
        not near(total / len(INPUTS)),
        f"The steps are right, but {mean:.4g} is not the mean loss before each step.",
    )


def _reference(
    batches: list, *, reset: bool = True, reduction: str = "mean"
) -> tuple[torch.Tensor, list[float]]:
    """Return the weights after the epoch, and the loss of each batch."""
    model, losses = copy.deepcopy(MODEL), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in batches:
        loss = torch.nn.functional.mse_loss(model(inputs), targets, reduction=reduction)
        loss.backward()
        optimizer.step()
        if reset:
            optimizer.zero_grad()
        losses.append(loss.item())
    return model.weight.detach(), losses


def _compare_weights(ended: torch.Tensor, steps: int) -> Mistakes:
    def after(batches: list, **changes: Any) -> bool:
        return same(ended, _reference(batches, **changes)[0], within=1e-5)

    yield (
        torch.equal(ended, MODEL.weight),
        "No step had a gradient. Is backward() there, and the reset after the step?",
    )
    yield (
        after(BATCHES, reset=False),
        "Without a reset each batch adds its gradients to the earlier ones: zero_grad().",
    )
    yield (
        after(BATCHES[:-1]),
        "The last batch is short, and you left it out: its 3 samples are never learned from.",
    )
    yield (
        after(BATCHES, reduction="sum"),
        "You add squared errors up: large batches make large steps. Take their mean.",
    )
    yield steps != 3, f"There are 3 batches, and each should make one step, but there were {steps}."
    yield (
        True,
        "The parameters differ from those after one step on the mean squared error "
        "for each batch, in order.",
    )


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
    right="Now your own loop: `my_overhead(16, times[16], 256, times[256])` is the overhead of a "
    "step here, in seconds. A batch pays for as long as its work is less than that.",
)
def overhead(answer: Any) -> Mistakes:
    """Write my_overhead(few, few_s, many, many_s): the seconds that a step costs whatever its
    batch, from its times with `few` windows and with `many`.
    """
    for fixed, each, few, many in ((3e-6, 1e-9, 1_000, 1_000_000), (2e-3, 5e-6, 100, 400)):
        few_s, many_s = fixed + few * each, fixed + many * each
        given = number_of(answer(few, few_s, many, many_s), "the seconds that a step costs")
        near = partial(math.isclose, given, rel_tol=1e-3)
        yield (
            near(few_s - few * many_s / many) and not near(fixed),
            "many_s / many holds some of the fixed part too.",
        )
        yield (
            near(each),
            "That is what one more window costs. What is left without any window?",
        )
        yield near(many_s - few_s), "That is what the additional windows took together."
        yield (
            near(few_s),
            "That is the whole time of the small step, which includes its windows.",
        )
        yield (
            near(few_s / few),
            "You divide the time by the windows: that spreads the fixed part over them.",
        )
        yield (
            not near(fixed),
            f"Times of {few_s:g} s and {many_s:g} s do not have a fixed part of {given:g} s.",
        )
