"""The exercises of lesson 1: windows, one epoch by hand, and how many threads."""

import statistics
from collections.abc import Callable

import torch
from torch.nn.functional import mse_loss

from course_utils.data import Scale, air_passengers, make_windows
from course_utils.exercises.answers import number_of
from course_utils.exercises.exercise import Wrong, exercise, expect, expect_function, quote

LENGTH = 12  # months in a window


@exercise(
    hints=(
        "The section on the data cut windows of 20 months with one call. What has to change?",
        "`make_windows(scaled, length=...)` returns the pair that is asked for.",
    ),
    solution="my_windows = make_windows(scaled, length=12)",
)
def windows(answer: object) -> str:
    """Cut the scaled training months into windows of 12 months, and give the pair (inputs, targets)."""
    expect(answer, tuple | list, "a pair of tensors, (inputs, targets)")
    if len(answer) != 2:
        raise Wrong(f"This should be a pair, the inputs and the targets, but it has {len(answer)} parts.")
    inputs, targets = (_as_tensor(part) for part in answer)
    train, validation = air_passengers()
    right_inputs, right_targets = make_windows(Scale.fit(train).apply(train), LENGTH)
    _check_shape(inputs, right_inputs, len(train) + len(validation))
    if inputs.max() > 2:
        raise Wrong("These are passengers, not values of the scale: a small network trains best on small numbers.")
    if _same(inputs, make_windows(Scale.fit(torch.cat([train, validation])).apply(train), LENGTH)[0]):
        raise Wrong(
            "The scale was fitted on all 144 months, so the model is told the height of a peak that has not happened "
            "yet. That is leakage: fit it on the training months."
        )
    if not _same(inputs, right_inputs):
        raise Wrong("The inputs are not the training months, scaled to 0 and 1 and in their order.")
    if _same(targets, inputs):
        raise Wrong("Each target is its own input. The model would learn to repeat, not to say what comes next.")
    if not _same(targets, right_targets):
        raise Wrong("A target should be its window one month later: targets[i, j] is the month after inputs[i, j].")
    return (
        "109 windows, where 20 months gave 101: shorter windows make more examples, each with less to remember. How "
        "many steps is one epoch now, and how many windows are in its last batch?"
    )


def _as_tensor(part: object) -> torch.Tensor:
    try:
        return torch.as_tensor(part).detach().float()
    except Exception:
        raise Wrong(f"Both parts should be tensors, but one is of type {type(part).__name__}.") from None


def _check_shape(inputs: torch.Tensor, right: torch.Tensor, months: int) -> None:
    shape = tuple(inputs.shape)
    if shape == (101, 20, 1):
        raise Wrong("These windows are still 20 months long.")
    if shape == tuple(right.shape[:2]):
        raise Wrong(f"The shape is {shape}: the last dimension, one number a month, is missing.")
    if shape[1:] == (LENGTH, 1) and shape[0] == months - LENGTH:
        raise Wrong("These windows reach into the 23 months that were kept aside. Cut the training months alone.")
    if shape[1:] == (LENGTH, 1) and shape[0] < 12:
        raise Wrong(f"You cut {shape[0]} windows, one after the other. Windows overlap: one begins at every month.")
    if shape[1:] == (LENGTH, 1) and shape[0] != len(right):
        raise Wrong(f"There are {len(right)} windows with a month after them in the training months, not {shape[0]}.")
    if shape != tuple(right.shape):
        raise Wrong(f"The inputs have the shape {shape}, and it should be {tuple(right.shape)}: windows, months, 1.")


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, atol=1e-5)


class CountingSGD(torch.optim.SGD):
    """Plain gradient descent that counts its steps."""

    steps = 0

    def step(self, closure: Callable | None = None) -> object:
        """Make one step."""
        self.steps += 1
        return super().step(closure)


def _model() -> torch.nn.Linear:
    model = torch.nn.Linear(2, 1)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.5, -0.25]]))
        model.bias.zero_()
    return model


def _batches() -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return three batches, of 8, 8 and 3 samples, of which the last is the hardest."""
    inputs = torch.sin(torch.arange(38.0)).view(19, 2)
    targets = inputs.sum(1, keepdim=True) + torch.tensor([0.0] * 8 + [1.0] * 8 + [3.0] * 3).view(19, 1)
    return list(zip(inputs.split(8), targets.split(8), strict=True))


@exercise(
    hints=(
        "Forward, backward, step, reset, for each batch. And 3 hard samples must not count as much as 8 easy ones.",
        "Add up `loss.item() * len(inputs)` and the number of samples, and divide at the end. Reset with "
        "`optimizer.zero_grad()`.",
    ),
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
)
def one_epoch(answer: object) -> str:
    """Write my_epoch(model, optimizer, batches): a step for each pair (inputs, targets); return the epoch's mean
    squared error over all samples.
    """
    expect_function(answer, "model", "optimizer", "batches")
    model, batches = _model(), _batches()
    optimizer = CountingSGD(model.parameters(), lr=0.1)
    returned = answer(model, optimizer, batches)
    _check_steps(model, optimizer.steps)
    if isinstance(returned, torch.Tensor) and returned.requires_grad:
        raise Wrong("The loss that you return still holds the graph of its gradients in memory: read it with .item().")
    _check_mean(number_of(returned, "the mean loss of the epoch"))
    return (
        "The last batch is short, and it counted for what it is. In the section on the loop, find the two places "
        "where train_in_view does the same."
    )


def _reference(batches: list, *, reset: bool = True, reduction: str = "mean") -> tuple[torch.Tensor, list[float]]:
    """Return the weights after the epoch, and the loss of each batch."""
    model, losses = _model(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in batches:
        loss = mse_loss(model(inputs), targets, reduction=reduction)
        loss.backward()
        optimizer.step()
        if reset:
            optimizer.zero_grad()
        losses.append(loss.item())
    return model.weight.detach(), losses


def _check_steps(model: torch.nn.Linear, steps: int) -> None:
    ended = model.weight.detach()
    if steps == 0:
        raise Wrong("optimizer.step() was never called, so nothing was learned.")
    if torch.equal(ended, _model().weight):
        raise Wrong(
            "The optimizer stepped, but no parameter moved: at each step there was no gradient. Is backward() there, "
            "and the reset after the step rather than before it?"
        )
    if _same(ended, _reference(_batches())[0]):
        return
    if _same(ended, _reference(_batches(), reset=False)[0]):
        raise Wrong("Without a reset the gradients of earlier batches are added to the later ones: zero_grad().")
    if _same(ended, _reference(_batches()[:-1])[0]):
        raise Wrong("The last batch is short, and you left it out: its 3 samples are never learned from.")
    if _same(ended, _reference(_batches(), reduction="sum")[0]):
        raise Wrong(
            "You add the squared errors up: a batch of 8 then makes larger steps than one of 3. Take their mean."
        )
    if steps != 3:
        raise Wrong(f"There are 3 batches, and each should make one step, but there were {steps}.")
    raise Wrong("The parameters end elsewhere than after one step of the mean squared error for each batch, in order.")


def _check_mean(mean: float) -> None:
    losses, sizes = _reference(_batches())[1], [len(inputs) for inputs, _ in _batches()]
    near = lambda value: abs(mean - value) < 1e-4 * value  # noqa: E731
    if near(sum(loss * size for loss, size in zip(losses, sizes, strict=True)) / sum(sizes)):
        return
    if near(statistics.mean(losses)):
        raise Wrong(
            "You took the mean of the batches' losses. The last batch has 3 samples and the others have 8: weigh each "
            "loss with its batch."
        )
    if near(losses[-1]):
        raise Wrong("That is the loss of the last batch alone.")
    if near(sum(losses)) or near(sum(loss * size for loss, size in zip(losses, sizes, strict=True))):
        raise Wrong("That is a sum: divide by the number of samples.")
    raise Wrong(f"The steps are right, but the mean of the losses that made them is not {mean:.4g}.")


class Noisy:
    """A stand-in for a measurement, in which another program disturbs every tenth reading with the best count."""

    def __init__(self, seconds: dict[int, float]):
        self.seconds, self.best = seconds, min(seconds, key=seconds.get)
        self.readings: dict[int, list[float]] = {count: [] for count in seconds}

    def __call__(self, threads: int) -> float:
        """Return the seconds of one reading with this number of threads."""
        if threads not in self.readings:
            raise Wrong(f"Measure the counts that you are given, {list(self.readings)}, not {quote(threads)}.")
        number = len(self.readings[threads])
        times = 50 if threads == self.best and number % 10 == 1 else 1 + 0.01 * (number % 3)
        self.readings[threads].append(self.seconds[threads] * times)
        return self.readings[threads][-1]


@exercise(
    hints=(
        "Take several readings with each count. Which summary of them does a single slow one not change?",
        "`min(counts, key=...)` with the `statistics.median` of nine readings as key.",
    ),
    solution="""
        def my_fastest(seconds_with, counts):
            def typical(count):
                return statistics.median(seconds_with(count) for _ in range(9))

            return min(counts, key=typical)
    """,
)
def fastest(answer: object) -> str:
    """Write my_fastest(seconds_with, counts): the number of threads that is fastest. seconds_with(n) takes one reading,
    and now and then another program disturbs it.
    """
    expect_function(answer, "seconds_with", "counts")
    for seconds in ({1: 1.0e-3, 2: 1.2e-3, 4: 3.0e-3}, {1: 3.0e-3, 2: 1.8e-3, 4: 1.1e-3}):
        noisy = Noisy(seconds)
        _check_choice(answer(noisy, list(seconds)), noisy)
    return (
        "Some readings were disturbed, and your answer did not mind. Now let it choose for a step of the RNN: "
        "`my_fastest(lambda n: time_call(one_step, threads=n, max_s=0.2).median_s, [1, 2])`."
    )


def _check_choice(returned: object, noisy: Noisy) -> None:
    counts = list(noisy.readings)
    chosen = number_of(returned, "a number of threads")
    fewest = min(map(len, noisy.readings.values()))
    if not any(noisy.readings.values()):
        raise Wrong("Your function measured nothing. More threads are not always faster, and nor are fewer.")
    if chosen not in counts:
        raise Wrong(f"Return one of {counts}, the number of threads itself, but you returned {chosen:g}.")
    if fewest == 0:
        raise Wrong(f"Your function measured only some of the counts {counts}.")
    if fewest < 3:
        raise Wrong("One or two readings are a lottery ticket: another program may disturb any of them. Take more.")
    if chosen == noisy.best:
        return
    means = {count: statistics.mean(readings) for count, readings in noisy.readings.items()}
    if chosen == min(means, key=means.get):
        raise Wrong("A single disturbed reading rules the mean, or the sum. The median does not mind it.")
    raise Wrong(f"With {chosen:g} threads it is slow: {noisy.best} typically took less time, and less time is faster.")
