"""The exercises of lesson 9: repair an accumulation, and plan a training of one's own."""

from typing import Any

import torch
from torch import Tensor, nn

from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.read_answer import Wrong, expect, number_of, same
from course_tools.estimate.chips import find_chip
from course_tools.estimate.memory.estimate_memory import estimate_memory
from course_tools.estimate.memory.memory_model import capacity_bytes
from course_utils.units import format_bytes

CHIP = "T4"
OUTPUTS = 3  # of the model in `budget`: not as many as small batches, so that two mistakes differ
BUSY = 256  # a batch that is called large enough, however small the model is
MOST = 0.9  # of the largest batch, because the estimate can be wrong by a tenth


@exercise(
    "Call `backward` for each small batch: PyTorch adds to the gradients that are there. Mind what "
    "the mean of a small batch has to count.",
    "The loss of the whole batch is a mean over all samples. A small batch of n samples out of N "
    "contributes n / N of it, so multiply its mean loss by n / N before `backward`.",
    solution="""
        def my_step(model, inputs, targets, most):
            for start in range(0, len(inputs), most):
                x, y = inputs[start : start + most], targets[start : start + most]
                loss = torch.nn.functional.mse_loss(model(x), y)
                (loss * len(x) / len(inputs)).backward()
    """,
    right="The gradients agree to six digits, also where the last small batch is short. Layers "
    "that look at the whole batch, such as BatchNorm, are the exception: they see the small batch.",
)
def budget(answer: Any) -> Mistakes:
    """Write my_step(model, inputs, targets, most): leave in `.grad` the gradients of the mean
    squared error over all samples, while the model never sees more than `most` samples at a time.
    """
    torch.manual_seed(7)
    for samples, most in ((8, 4), (10, 4)):
        model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, OUTPUTS))
        inputs, targets = torch.rand(samples, 6), torch.rand(samples, OUTPUTS)
        last = slice(samples - (samples % most or most), samples)
        of_last = _gradients(model, inputs[last], targets[last])
        right = _gradients(model, inputs, targets)
        seen, held = _watch(model)
        answer(model, inputs, targets, most)
        found = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
        case = f"With {samples} samples, {most} at a time"
        yield not seen, "Your function has not called the model as `model(x)`."
        yield (
            max(seen) > most,
            f"{case}: the model saw {max(seen)} samples at once, which does not fit.",
        )
        yield sum(seen) != samples, f"{case}: the model saw {sum(seen)} of {samples} samples."
        waits = f"{case}: the activations of {max(held)} samples waited for a backward pass"
        yield (
            max(held) > most,
            f"{waits}, which does not fit. Call backward for each small batch, before the model "
            f"sees the next one.",
        )
        yield from _check_gradients(found, right, of_last, case)


def _gradients(model: nn.Module, inputs: Tensor, targets: Tensor) -> list[Tensor]:
    """Return the gradients of the mean squared error, and leave none in the model."""
    loss = nn.functional.mse_loss(model(inputs), targets)
    return list(torch.autograd.grad(loss, list(model.parameters())))


def _watch(model: nn.Module) -> tuple[list[int], list[int]]:
    """Return two lists that fill with each call of the model.

    The first gets its samples, the second all samples whose activations are then in memory.
    """
    seen: list[int] = []
    held: list[int] = []
    waiting: list[int] = []

    def note(module: nn.Module, given: tuple[Tensor, ...], out: Tensor) -> None:
        size = len(out)
        seen.append(size)
        held.append(size + sum(waiting))
        if out.requires_grad:
            waiting.append(size)
            out.register_hook(lambda grad: waiting.remove(size))

    model.register_forward_hook(note)
    return seen, held


def _check_gradients(
    found: list[Tensor], right: list[Tensor], of_last: list[Tensor], case: str
) -> Mistakes:
    """Compare with the gradients of all samples, and of the last small batch alone."""
    ratio = (found[0].norm() / right[0].norm()).item()
    yield (
        ratio == 0,
        "There are no gradients. Call backward, and do not set them to zero afterwards.",
    )
    yield (
        _are_alike(found, of_last),
        f"{case}: only the gradients of the last small batch are left. Do not set them to zero "
        "between the small batches.",
    )
    times = f"{case}: the gradients are {ratio:.3g} times as large as they should be."
    yield (
        _are_alike(found, right, OUTPUTS),
        f"{times} The mean divides by the samples and by the {OUTPUTS} outputs of each.",
    )
    yield (
        ratio > 1.3,
        f"{times} The mean of a small batch divides by its own samples alone: multiply each loss "
        "by its share of all samples before `backward`.",
    )
    yield (
        ratio < 0.9 and _are_alike(found, right),
        f"{times} A mean is divided by its own samples already: what share of all are they?",
    )
    yield (
        not _are_alike(found, right, 1),
        f"{case}: the gradients differ. Does the short last batch count as much as a full one?",
    )


def _are_alike(found: list[Tensor], right: list[Tensor], times: float | None = None) -> bool:
    """Say whether gradients are `times` as large as the right ones, or so many times as any."""
    if times is None:
        times = (found[0].norm() / right[0].norm()).item()
    return all(same(one, times * two, 1e-6) for one, two in zip(found, right, strict=True))


@exercise(
    "Return your model (any `nn.Module`), one example of its input, with a first dimension of 1, "
    "and a batch. `estimate_memory(model, example).largest_batch('T4')` says how far you can go.",
    "Take half to nine tenths of the largest batch that the estimate gives. For a small model some "
    "hundreds are enough. Powers of two are customary.",
    solution="""
        def my_plan():
            model = torch.nn.Sequential(
                torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                torch.nn.Linear(32 * 62 * 62, 10),
            )
            return model, torch.empty(1, 3, 64, 64), 8_192
    """,
    right="It is an estimate, and can be wrong by a tenth, which you leave free.",
)
def plan(answer: Any) -> Mistakes:
    """Write my_plan(): return your own model, one example of its input, and the batch that you
    would train on a free T4 with Adam and mixed precision.
    """
    found = answer()
    expect(found, list | tuple, "a model, an example of its input, and a batch")
    yield len(found) != 3, f"Return three things, but there are {len(found)}."
    model, example, batch = found
    expect(model, nn.Module, "the model: an nn.Module")
    batch = int(number_of(batch, "the batch"))
    yield batch < 1, f"A batch of {batch} trains nothing. It has one sample at least."
    try:
        memory = estimate_memory(model, example, batch=batch)
    except (RuntimeError, TypeError, ValueError) as error:
        raise Wrong(
            f"The step could not be followed: {error} (Here the first dimension is the batch.)"
        ) from error
    room = capacity_bytes(find_chip(CHIP))
    need = f"{format_bytes(memory.needed_bytes)} of the {format_bytes(room)} of a {CHIP}"
    largest = memory.largest_batch(CHIP)
    state = memory.moments[0]
    held = format_bytes(state.parameters + state.gradients + state.optimizer)
    yield (
        largest == 0,
        f"Not one sample fits a {CHIP}: parameters and optimizer alone take {held}. "
        f"Think of LoRA, 8-bit Adam or several devices, or try a smaller model here.",
    )
    over = f"A batch of {batch:,} needs {need}; {largest:,} would fit."
    yield batch > largest, f"{over} Take fewer, and accumulate them if the step needs so many."
    most = max(1, int(MOST * largest))
    yield batch > most, f"A batch of {batch:,} needs {need}: leave a tenth free, take {most:,}."
    spare = f"A batch of {batch:,} needs {need}, so most of the card stays empty; {largest:,}"
    enough = min(largest // 4, BUSY)
    small = batch < enough and memory.needed_bytes < room / 2
    yield small, f"{spare} would fit. A larger batch keeps a GPU busier: take {enough} or more."
    counted = [f"Assumed: {sentence}." for sentence in memory.assumed]
    if not memory.loss_counted:
        counted.append("Your loss is not counted in it.")
    return " ".join([f"{need}; the largest batch is {largest:,}.", *counted])
