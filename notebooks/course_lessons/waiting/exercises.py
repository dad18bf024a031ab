"""The exercises of lesson 6: a loop that reads its loss too often, and a change in your own."""

from typing import Any

from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.read_answer import expect, number_of
from course_utils.timeline.bottleneck import Bottleneck

BATCHES = 20
LOSSES = [1.0 / (number + 1) for number in range(BATCHES)]


class _Loss:
    """A loss on a device: sums stay there, and reading one is noted."""

    reads = 0

    def __init__(self, value: float):
        self._value = value

    def __add__(self, other: Any) -> "_Loss":
        return _Loss(self._value + getattr(other, "_value", other))

    __radd__ = __add__

    def __truediv__(self, number: float) -> "_Loss":
        return _Loss(self._value / number)

    def detach(self) -> "_Loss":
        return self

    def item(self) -> float:
        _Loss.reads += 1
        return self._value

    __float__ = item

    def cpu(self) -> "_Loss":
        _Loss.reads += 1
        return self


@exercise(
    "Adding does not need the value: `total += loss.detach()` stays on the device.",
    "Start with `total = 0`, add `step(batch).detach()` in the loop, and read once, after it.",
    solution="""
        def my_epoch(step, loader):
            total = 0
            for batch in loader:
                total = total + step(batch).detach()
            return total.item() / len(loader)
    """,
    right="The queue now stays full for a whole epoch. A progress bar that shows the loss of every "
    "hundredth step costs little, too.",
)
def read_once(answer: Any) -> Mistakes:
    """Write my_epoch(step, loader): take a step on each batch and return the mean loss, a number,
    with a single read. step(batch) returns the loss, which is on the device.
    """
    losses = iter(LOSSES)
    taken: list[int] = []

    def step(batch: int) -> _Loss:
        taken.append(batch)
        return _Loss(next(losses))

    _Loss.reads = 0
    said = answer(step, list(range(BATCHES)))
    yield taken != list(range(BATCHES)), "Take one step on each batch of the loader."
    yield isinstance(said, _Loss), "The mean is still on the device: read it at the end, `.item()`."
    mean = number_of(said, "the mean loss")
    yield (
        _Loss.reads >= BATCHES,
        f"Your loop reads the loss {_Loss.reads} times, and the queue runs empty each time.",
    )
    yield _Loss.reads > 1, f"One read is enough, and your function reads {_Loss.reads} times."
    yield abs(mean - sum(LOSSES)) < 1e-6, "That is the sum. Divide it by the number of batches."
    yield abs(mean - sum(LOSSES) / BATCHES) > 1e-6, "That is not the mean of the losses."


# What helps against each limit; a part of any of these words is enough.
CURES = {
    "loader": ("num_workers", "workers", "cache", "store", "prepare"),
    "copies": ("pin_memory", "non_blocking", "uint8", "pinned"),
    "launches": ("batch", "compile", "graph", "item", "read"),
    "arithmetic": ("autocast", "16", "bf16", "fp16", "gpu", "smaller", "channels_last"),
}


@exercise(
    "Which part of the verdict is the largest? A cure of another part changes nothing much.",
    "loader: num_workers; copies: pin_memory; launches: a larger batch or torch.compile; "
    "arithmetic: autocast or a GPU.",
    solution="""
        verdict = find_bottleneck(step, DataLoader(Photographs(), batch_size=None))
        my_change = (verdict, "num_workers")
    """,
    right="Make the change, and call find_bottleneck again: the largest part is another one now, "
    "or the loop is as fast as it gets on this device.",
)
def own_loop(answer: Any) -> Mistakes:
    """Call find_bottleneck on a loop of your own, and name the first change that you would make:
    my_change = (find_bottleneck(step, loader), "the change").
    """
    expect(answer, tuple, "a pair: the verdict and the change")
    yield len(answer) != 2, "Give two things: the verdict, and the change in a word or two."
    verdict, change = answer
    expect(verdict, Bottleneck, "what find_bottleneck returned")
    expect(change, str, "the change, as a text")
    parts = sorted(CURES, key=verdict.share, reverse=True)
    limits = [verdict.limit] if verdict.limit else parts[:2]
    helped = [part for part in CURES if any(word in change.lower() for word in CURES[part])]
    yield not helped, f"I do not know {change!r}. What would you try against the {limits[0]}?"
    yield (
        not set(helped) & set(limits),
        f"That helps against the {helped[0]}, which take {verdict.share(helped[0]):.0%} of the "
        f"step here. The largest part is the {limits[0]}: {verdict.share(limits[0]):.0%}.",
    )
