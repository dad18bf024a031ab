"""The exercises of lesson 7: predict a peak, make a training fit a budget, and find what keeps the
graph alive.
"""

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from course_lessons.exercises import Mistakes, exercise
from course_lessons.exercises.read_answer import expect, number_of, same

# parameters, bytes of activations for one sample, batch; the right answer in bytes, and what
# decides it
TRAININGS = (
    (
        25_000_000,
        90e6,
        64,
        6.06e9,
        "the activations: 300 MB of weights and Adam's moments, and 5.76 GB of activations",
    ),
    (
        25_000_000,
        90e6,
        1,
        0.4e9,
        "the optimizer's step: with one sample, the gradients outweigh the activations",
    ),
    (
        1_000_000_000,
        20e6,
        8,
        16e9,
        "the optimizer's step: 16 bytes for each parameter, and few activations",
    ),
)


@exercise(
    "Count bytes for each parameter in fp32: 4 for itself, 8 for Adam's two moments, and 4 for its gradient. Which of "
    "these are there when the backward pass begins?",
    "When the backward pass begins there are 12 bytes a parameter and all activations; when it ends there are 16 bytes "
    "a parameter and no activations. The peak is the larger of the two.",
    solution="""
        def my_peak(parameters, activation_bytes, batch):
            begins = 12 * parameters + activation_bytes * batch
            ends = 16 * parameters
            return max(begins, ends)
    """,
    right="That is the estimate in two lines. `estimate_memory` also finds the activations, which you were given, and "
    "adds the framework and what the optimizer's step needs for a moment.",
)
def peak(answer: Any) -> Mistakes:
    """Write my_peak(parameters, activation_bytes, batch): the peak in bytes of a training step in
    fp32 with Adam, where a sample needs `activation_bytes` and the gradients appear while the
    activations disappear.
    """
    for parameters, activations, batch, right, why in TRAININGS:
        said = number_of(answer(parameters, activations, batch), "the peak in bytes")
        near = partial(math.isclose, said, rel_tol=1e-3)
        if near(right):
            continue
        case = f"For {parameters:,} parameters, {activations / 1e6:g} MB a sample and a batch of {batch}"
        yield said < 1e6, f"{case}, your function says {said:g}. Return bytes, and not MB or GB."
        held = activations * batch
        no_moments = near(4 * parameters + held) or near(8 * parameters + held)
        yield no_moments, f"{case}, you left Adam's two moments out: 8 bytes a parameter."
        frees = "They are not there together: the backward pass frees activations as it makes gradients."
        yield near(16 * parameters + held), f"{case}, you added gradients and activations. {frees}"
        begins = f"{case}, you have the moment when the backward pass begins."
        yield (
            near(12 * parameters + held),
            f"{begins} Look at its end too: by then the gradients are there.",
        )
        comes = f"{case}, the peak is {right / 1e9:.3g} GB, and it comes from {why}."
        yield True, f"{comes} Your function says {said / 1e9:.3g} GB."


@exercise(
    "Call `backward` for each small batch: PyTorch adds to the gradients that are there. Mind what the mean of a small "
    "batch has to count.",
    "The loss of the whole batch is a mean over all samples. A small batch of n samples out of N contributes n / N of "
    "it, so multiply its mean loss by n / N before `backward`.",
    solution="""
        def my_step(model, inputs, targets, most):
            for start in range(0, len(inputs), most):
                x, y = inputs[start : start + most], targets[start : start + most]
                loss = torch.nn.functional.mse_loss(model(x), y)
                (loss * len(x) / len(inputs)).backward()
    """,
    right="The gradients agree to six digits, also where the last small batch is short. Layers that look at the whole "
    "batch, such as BatchNorm, are the exception: they see the small batch.",
)
def budget(answer: Any) -> Mistakes:
    """Write my_step(model, inputs, targets, most): leave in `.grad` the gradients of the mean
    squared error over all samples, while the model never sees more than `most` samples at a time.
    """
    torch.manual_seed(7)
    for samples, most in ((8, 4), (10, 4)):
        model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
        inputs, targets = torch.rand(samples, 6), torch.rand(samples, 2)
        nn.functional.mse_loss(model(inputs), targets).backward()
        right = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        model.zero_grad()
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
        waits = f"{case}: the activations of {max(held)} samples waited for a backward pass, which does not fit."
        yield (
            max(held) > most,
            f"{waits} Call backward for each small batch, before the model sees the next one.",
        )
        yield from _check_gradients(found, right, case)


def _watch(model: nn.Module) -> tuple[list[int], list[int]]:
    """Return two lists that fill with each call: its samples, and all samples whose activations are
    then in memory.
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


def _check_gradients(found: list[Tensor], right: list[Tensor], case: str) -> Mistakes:
    ratio = (found[0].norm() / right[0].norm()).item()
    yield (
        ratio == 0,
        "There are no gradients. Call backward, and do not set them to zero afterwards.",
    )
    times = f"{case}: the gradients are {ratio:.3g} times as large as they should be."
    few = "The mean of a small batch divides by too few samples; a sum has to be divided by all samples and by the"
    yield ratio > 1.3, f"{times} {few} outputs of each."
    too_small = ratio < 0.9 and all(
        same(one, ratio * two, 1e-6) for one, two in zip(found, right, strict=True)
    )
    yield (
        too_small,
        f"{times} A mean is divided by its own samples already: what share of all samples are they?",
    )
    alike = all(same(one, two, 1e-6) for one, two in zip(found, right, strict=True))
    zero = f"{case}: the gradients differ. Do you set them to zero between the small batches"
    yield not alike, f"{zero}, or does the short last batch count as much as a full one?"


@exercise(
    "What does a loss hold on to when it was calculated with gradients? Everything that a backward pass would need.",
    "Two cures, and you want both: `with torch.no_grad():` around the forward pass, and `loss.item()` for what "
    "you keep.",
    solution="""
        def my_evaluation(model, batches):
            losses = []
            with torch.no_grad():
                for inputs, targets in batches:
                    losses.append(torch.nn.functional.mse_loss(model(inputs), targets).item())
            return losses
    """,
    right="Nothing of a batch outlives it now. In a training loop, keeping `loss` costs less, because `backward` frees "
    "the activations; but each loss in the list is still a tensor on the device, and keeps the nodes of its graph.",
)
def leak(answer: Any) -> Mistakes:
    """Write my_evaluation(model, batches): the mean squared error of each (inputs, targets) in
    `batches`, as a list, without saving activations for a backward pass, or keeping anything of a
    batch that is done.
    """
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
    batches = [(torch.rand(5, 6), torch.rand(5, 1)) for _ in range(3)]
    saved: list[int] = []

    def note(x: Tensor) -> Tensor:
        saved.append(x.numel())
        return x

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        said = answer(model, batches)
    expect(said, list | tuple, "a list of losses")
    right = [nn.functional.mse_loss(model(x), y).item() for x, y in batches]
    graph = "keeps its whole graph alive, activations included. Keep loss.item()."
    for one in said:
        held = isinstance(one, Tensor) and one.grad_fn is not None
        yield held, f"An entry of your list has a grad_fn: it {graph}"
    yield (
        len(said) != len(batches),
        f"There are {len(batches)} batches, but the length of your list is {len(said)}.",
    )
    values = [number_of(one, "each loss") for one in said]
    differ = any(abs(one - two) > 1e-3 for one, two in zip(values, right, strict=True))
    yield differ, "The losses are not the mean squared errors of the batches."
    yield (
        saved,
        "The forward pass still saves activations for a backward pass that never comes. Use torch.no_grad().",
    )
