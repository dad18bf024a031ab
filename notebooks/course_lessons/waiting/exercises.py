"""The exercises of lesson 7: a loop that reads its loss too often, and your own loop."""

from typing import Any

import torch

from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.graphs import Graphs
from course_lessons.exercises.read_answer import expect, number_of
from course_lessons.exercises.torch_calls import READS, TorchCalls
from course_tools.timeline.advice import WORTH_FIRST
from course_tools.timeline.bottleneck import ON_DEVICE, PARTS, Bottleneck

BATCHES = 20
KEPT = 2  # graphs that an answer may hold at a time: a name can still stand for the last loss


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
    right="The queue now never runs empty because of a read. A progress bar that shows the loss of "
    "every hundredth step costs little, too.",
)
def read_once(answer: Any) -> Mistakes:
    """Write my_epoch(step, loader): take a step on each batch and return the mean loss, a number,
    with a single read. step(batch) returns the loss, which is on the device.
    """
    losses = torch.linspace(2, 1, BATCHES)
    taken: list[int] = []
    graphs, kept = Graphs(), []

    def step(batch: int) -> torch.Tensor:
        kept.append(len(graphs))
        taken.append(batch)
        return graphs.watch(losses[batch].clone().requires_grad_())

    with TorchCalls() as calls:
        said = answer(step, list(range(BATCHES)))
    reads = calls.count(READS)
    yield taken != list(range(BATCHES)), "Take one step on each batch of the loader."
    yield (
        isinstance(said, torch.Tensor),
        "The mean is still on the device: read it at the end, `.item()`.",
    )
    yield (
        max(kept, default=0) > KEPT,
        "The sum holds on to the graph of every loss, so the memory grows with each step: add "
        "`step(batch).detach()`.",
    )
    given, mean = number_of(said, "the mean loss"), losses.mean().item()
    yield (
        reads > 1,
        f"Your function reads values {reads} times, and the queue runs empty each time.",
    )
    yield abs(given - mean * BATCHES) < 1e-4, "That is the sum. Divide it by the number of batches."
    yield abs(given - mean) > 1e-4, "That is not the mean of the losses."


@exercise(
    "Which part of the verdict is the largest? Shortening another one changes little.",
    "The table has the shares, and the sentence below it names the part to begin with.",
    solution="""
        verdict = find_bottleneck(step, DataLoader(Photographs(), batch_size=None))
        my_loop = (verdict, "loader")
    """,
    right="Make the change that the verdict advises, and call find_bottleneck again. Either the "
    "largest part is another one now, or the loop is as fast as it gets on this device.",
)
def own_loop(answer: Any) -> Mistakes:
    """Call find_bottleneck on a loop of your own, and name the part that you would shorten first:
    my_loop = (find_bottleneck(step, loader), "the part").
    """
    expect(answer, tuple, "a pair: the verdict and the name of a part")
    yield len(answer) != 2, "Give two things: the verdict, and the name of a part."
    verdict, part = answer
    expect(verdict, Bottleneck, "what find_bottleneck returned")
    expect(part, str, "the name of a part, as a text")
    names = {name.lower(): name for name in PARTS}
    part = names.get(part.strip().lower(), part.strip())
    yield part not in PARTS, f"{part!r} is not the name of a part. They are: {', '.join(PARTS)}."
    largest, second = sorted(PARTS, key=verdict.share, reverse=True)[:2]
    # the same rule as that of the advice: what waits is removed before the work gets cheaper
    waits = [name for name in PARTS if name not in ON_DEVICE]
    worst_wait = max(waits, key=verdict.share)
    accepted = {largest, verdict.limit}
    if verdict.limit is None:
        accepted.add(second)
    if verdict.limit in ON_DEVICE and verdict.share(worst_wait) >= WORTH_FIRST:
        accepted.add(worst_wait)
    yield (
        part not in accepted,
        f"The {part} is only {verdict.share(part):.0%} of the step here. The largest part is the "
        f"{largest}: {verdict.share(largest):.0%}.",
    )
