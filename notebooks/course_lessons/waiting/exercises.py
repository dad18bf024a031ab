"""The exercises of lesson 7: a loop that reads its loss too often, and a change in your own."""

from typing import Any

import torch

from course_lessons.exercises.calls import READS, Calls
from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.read_answer import expect, number_of
from course_tools.timeline.bottleneck import Bottleneck

BATCHES = 20


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
    losses = torch.linspace(2, 1, BATCHES)
    taken: list[int] = []

    def step(batch: int) -> torch.Tensor:
        taken.append(batch)
        return losses[batch].clone()

    with Calls() as calls:
        said = answer(step, list(range(BATCHES)))
    reads = calls.count(READS)
    yield taken != list(range(BATCHES)), "Take one step on each batch of the loader."
    yield (
        isinstance(said, torch.Tensor),
        "The mean is still on the device: read it at the end, `.item()`.",
    )
    given, mean = number_of(said, "the mean loss"), losses.mean().item()
    yield (
        reads > 1,
        f"Your function reads values {reads} times, and the queue runs empty each time.",
    )
    yield abs(given - mean * BATCHES) < 1e-4, "That is the sum. Divide it by the number of batches."
    yield abs(given - mean) > 1e-4, "That is not the mean of the losses."


# What helps against each limit; a part of any of these words is enough.
CURES = {
    "loader": ("num_workers", "workers", "cache", "store", "prepare", "sampler", "whole", "slice"),
    "copies": ("pin_memory", "non_blocking", "uint8", "pinned"),
    "other ranks": ("rank", "accumul", "no_sync", "batch"),
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
