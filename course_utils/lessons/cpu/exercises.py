"""The exercises of lesson 1: windows, one epoch by hand, and how many threads."""

import copy
import math
import statistics
from typing import Any

import torch

from course_utils.data import Scale, air_passengers, make_windows
from course_utils.exercises import exercise
from course_utils.exercises.answers import expect_function, expect_pair, number_of, quote, refuse, same, tensor_of

LENGTH = 12  # months in a window


@exercise(
    "The section on the data cut windows of 20 months with one call. What has to change?",
    "`make_windows(scaled, length=...)` returns the pair that is asked for.",
    solution="my_windows = make_windows(scaled, length=12)",
    right="109 windows, where 20 months gave 101. How many steps is an epoch now, and how large is its last batch?",
)
def windows(answer: Any) -> None:
    """Cut the scaled training months into windows of 12 months, and give the pair (inputs, targets)."""
    expect_pair(answer, "(inputs, targets)")
    inputs, targets = (tensor_of(part, "Both parts should be tensors, but one is not.") for part in answer)
    train, validation = air_passengers()
    right_inputs, right_targets = make_windows(Scale.fit(train).apply(train), LENGTH)
    of_all, _ = make_windows(Scale.fit(torch.cat([train, validation])).apply(train), LENGTH)
    _check_shape(tuple(inputs.shape), tuple(right_inputs.shape))
    mistakes = {
        "These are passengers, not scaled values: a small network trains best on small numbers.": inputs.max() > 2,
        "The scale of all 144 months knows a future peak: leakage. Fit it on the training months.": same(
            inputs, of_all
        ),
        "The inputs are not the training months, scaled to 0 and 1 and in their order.": not same(inputs, right_inputs),
        "Each target is its own input: the model would learn to repeat, not to predict.": same(targets, inputs),
        "Target [i, j] should be the month after input [i, j], one month later.": not same(targets, right_targets),
    }
    refuse(mistakes)


def _check_shape(shape: tuple[int, ...], right: tuple[int, ...]) -> None:
    count = shape[0] if shape[1:] == (LENGTH, 1) else right[0]
    mistakes = {
        "These windows are still 20 months long.": shape == (101, 20, 1),
        f"The shape is {shape}: the last dimension, one number a month, is missing.": shape == right[:2],
        "These windows reach into the 23 months that were kept aside. Cut the training months.": count == right[0] + 23,
        f"You cut {count} windows, one after the other. Windows overlap: one begins at every month.": count < 12,
        f"There are {right[0]} windows with a month after them in the training months, not {count}.": count != right[0],
        f"The inputs have the shape {shape}, and it should be {right}: windows, months, 1.": shape != right,
    }
    refuse(mistakes)


INPUTS = torch.sin(torch.arange(38.0)).view(19, 2)
TARGETS = INPUTS.sum(1, keepdim=True) + torch.tensor([0.0] * 8 + [1.0] * 8 + [3.0] * 3).view(19, 1)
BATCHES = list(zip(INPUTS.split(8), TARGETS.split(8), strict=True))  # the last one is short, and the hardest
MODEL = torch.nn.utils.skip_init(torch.nn.Linear, 2, 1)  # draws no random numbers
MODEL.load_state_dict({"weight": torch.tensor([[0.5, -0.25]]), "bias": torch.zeros(1)})


@exercise(
    "Forward, backward, step, reset, for each batch. And 3 hard samples must not count as much as 8 easy ones.",
    "Add up `loss.item() * len(inputs)` and the samples, divide at the end, reset with `optimizer.zero_grad()`.",
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
    right="The short batch counted for what it is. Find the two places where train_in_view does the same.",
)
def one_epoch(answer: Any) -> None:
    """Write my_epoch(model, optimizer, batches): a step for each pair (inputs, targets); return the epoch's mean
    squared error over all samples.
    """
    expect_function(answer, "model", "optimizer", "batches")
    model, steps = copy.deepcopy(MODEL), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.register_step_post_hook(lambda *_: steps.append(1))
    returned = answer(model, optimizer, [(inputs.clone(), targets.clone()) for inputs, targets in BATCHES])
    _check_steps(model.weight.detach(), len(steps))
    graph = isinstance(returned, torch.Tensor) and returned.requires_grad
    refuse({"The loss that you return still holds the graph of its gradients: read it with .item().": graph})
    _check_mean(number_of(returned, "the mean loss of the epoch"))


def _reference(batches: list, *, reset: bool = True, reduction: str = "mean") -> tuple[torch.Tensor, list[float]]:
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


def _check_steps(ended: torch.Tensor, steps: int) -> None:
    def after(batches: list, **changes: Any) -> bool:
        return same(ended, _reference(batches, **changes)[0], within=1e-5)

    summed = after(BATCHES, reduction="sum")
    mistakes = {
        "optimizer.step() was never called, so nothing was learned.": steps == 0,
        "The optimizer stepped, but no parameter moved: at each step there was no gradient. Is backward() there, and "
        "the reset after the step rather than before it?": torch.equal(ended, MODEL.weight),
        "Without a reset, each batch adds its gradients to the earlier ones: zero_grad().": after(BATCHES, reset=False),
        "The last batch is short, and you left it out: its 3 samples are never learned from.": after(BATCHES[:-1]),
        "You add the squared errors up, so large batches make larger steps. Take their mean.": summed,
        f"There are 3 batches, and each should make one step, but there were {steps}.": steps != 3,
        "The parameters end elsewhere than after one step of the mean squared error for each batch, in order.": True,
    }
    if not after(BATCHES):
        refuse(mistakes)


def _check_mean(mean: float) -> None:
    losses, sizes = _reference(BATCHES)[1], [len(inputs) for inputs, _ in BATCHES]
    total = sum(loss * size for loss, size in zip(losses, sizes, strict=True))

    def is_near(*values: float) -> bool:
        return any(math.isclose(mean, value, rel_tol=1e-4) for value in values)

    mistakes = {
        "The last batch has 3 samples, others 8: weigh each loss with its batch.": is_near(statistics.mean(losses)),
        "That is the loss of the last batch alone.": is_near(losses[-1]),
        "That is a sum: divide by the number of samples.": is_near(sum(losses), total),
        f"The steps are right, but the mean of the losses that made them is not {mean:.4g}.": True,
    }
    if not is_near(total / sum(sizes)):
        refuse(mistakes)


@exercise(
    "Take several readings with each count. Which summary of them does a single slow one not change?",
    "`min(counts, key=...)` with the `statistics.median` of nine readings as key.",
    solution="""
        def my_fastest(seconds_with, counts):
            def typical(count):
                return statistics.median(seconds_with(count) for _ in range(9))

            return min(counts, key=typical)
    """,
    right="Now let it choose for a step of the RNN: `my_fastest(lambda n: time_call(one_step, threads=n, "
    "max_s=0.2).median_s, [1, 2])`.",
)
def fastest(answer: Any) -> None:
    """Write my_fastest(seconds_with, counts): the number of threads that is fastest. seconds_with(n) takes one reading,
    and now and then another program disturbs it.
    """
    expect_function(answer, "seconds_with", "counts")
    _check_choice(answer, {1: 1.0e-3, 2: 1.2e-3, 4: 3.0e-3})
    _check_choice(answer, {1: 3.0e-3, 2: 1.8e-3, 4: 1.1e-3})


def _check_choice(answer: Any, seconds: dict[int, float]) -> None:
    """Judge an answer by a stand-in for a timer, in which every tenth reading with the best count is disturbed."""
    counts, best = list(seconds), min(seconds, key=lambda count: seconds[count])
    readings: dict[int, list[float]] = {count: [] for count in counts}

    def seconds_with(threads: int) -> float:
        refuse({f"Measure the counts that you are given, {counts}, not {quote(threads)}.": threads not in counts})
        number = len(readings[threads])
        times = 50 if threads == best and number % 10 == 1 else 1 + 0.01 * (number % 3)
        readings[threads].append(seconds[threads] * times)
        return readings[threads][-1]

    chosen = number_of(answer(seconds_with, list(counts)), "a number of threads")
    fewest, *_, most = sorted(map(len, readings.values()))
    mistakes = {
        "Your function measured nothing. More threads are not always faster, nor are fewer.": most == 0,
        f"Return one of {counts}, the number of threads itself, but you returned {chosen:g}.": chosen not in counts,
        f"Your function measured only some of the counts {counts}.": fewest == 0,
        "One or two readings are a lottery ticket: another program may disturb any of them. Take more.": fewest < 3,
    }
    refuse(mistakes)
    means = {count: statistics.mean(values) for count, values in readings.items()}
    by_mean = chosen != best and means[int(chosen)] == min(means.values())
    refuse({"A single disturbed reading rules the mean, or the sum. The median does not mind it.": by_mean})
    slow = f"With {chosen:g} threads it is slow: {best} typically took less time, and less time is faster."
    refuse({slow: chosen != best})
