"""The exercises of lesson 7: predict a peak, make a training fit a budget, and find what keeps the graph alive."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.exercises import exercise
from course_utils.exercises.answers import Wrong, expect, expect_function, number_of, refuse, same

# parameters, bytes of activations for one sample, batch; the right answer in bytes, and what decides it
TRAININGS = (
    (25_000_000, 90e6, 64, 6.06e9, "the activations: 300 MB of weights and Adam's moments, and 5.76 GB of activations"),
    (25_000_000, 90e6, 1, 0.4e9, "the optimizer's step: with one sample, the gradients outweigh the activations"),
    (1_000_000_000, 20e6, 8, 16e9, "the optimizer's step: 16 bytes for each parameter, and few activations"),
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
    right="That is the whole estimate on two lines. What `estimate_memory` adds is the number that you were given: the "
    "bytes of activations.",
)
def peak(answer: Any) -> None:
    """Write my_peak(parameters, activation_bytes, batch): the peak in bytes of a training step in fp32 with Adam, where
    a sample needs `activation_bytes` and the gradients appear while the activations disappear.
    """
    expect_function(answer, "parameters", "activation_bytes", "batch")
    for parameters, activations, batch, right, why in TRAININGS:
        said = number_of(answer(parameters, activations, batch), "the peak in bytes")
        case = f"For {parameters:,} parameters, {activations / 1e6:g} MB a sample and a batch of {batch}"
        held = activations * batch
        mistakes = {
            f"{case}, you left Adam's two moments out: 8 bytes a parameter.": _near(said, 4 * parameters + held)
            or _near(said, 8 * parameters + held),
            f"{case}, you added gradients and activations. They are not there together: the backward pass frees "
            "activations as it makes gradients.": _near(said, 16 * parameters + held),
            f"{case}, you have the moment when the backward pass begins. Look at its end too: by then the gradients "
            "are there.": right != 12 * parameters + held and _near(said, 12 * parameters + held),
            f"{case}, the peak is {right / 1e9:.3g} GB, and it comes from {why}. Your function says "
            f"{said / 1e9:.3g} GB.": not _near(said, right),
        }
        refuse(mistakes)


def _near(one: float, other: float) -> bool:
    return abs(one - other) < 1e-3 * other


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
def budget(answer: Any) -> None:
    """Write my_step(model, inputs, targets, most): leave in `.grad` the gradients of the mean squared error over all
    samples, while the model never sees more than `most` samples at a time.
    """
    expect_function(answer, "model", "inputs", "targets", "most")
    torch.manual_seed(7)
    for samples, most in ((8, 4), (10, 4)):
        model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
        inputs, targets = torch.rand(samples, 6), torch.rand(samples, 2)
        nn.functional.mse_loss(model(inputs), targets).backward()
        right = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        model.zero_grad()
        seen: list[int] = []
        model.register_forward_hook(lambda module, args, out, seen=seen: seen.append(len(args[0])))
        answer(model, inputs, targets, most)
        found = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
        _judge_gradients(found, right, seen, samples, most)


def _judge_gradients(found: list[Tensor], right: list[Tensor], seen: list[int], samples: int, most: int) -> None:
    ratio = (found[0].norm() / right[0].norm()).item()
    case = f"{samples} samples, {most} at a time"
    mistakes = {
        "Your function has not called the model.": not seen,
        f"With {case}: the model saw {max(seen, default=0)} samples at once, which does not fit.": any(
            n > most for n in seen
        ),
        f"With {case}: the model saw {sum(seen)} of {samples} samples.": sum(seen) != samples,
        "There are no gradients. Call backward, and do not set them to zero afterwards.": ratio == 0,
        f"With {case}: the gradients are {ratio:.3g} times too large. The mean of a small batch divides by too few "
        "samples.": ratio > 1.3,
        f"With {case}: the gradients differ. Do you set them to zero between the small batches, or does the short last "
        "batch count as much as a full one?": not all(
            same(one, two, 1e-6) for one, two in zip(found, right, strict=True)
        ),
    }
    refuse(mistakes)


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
    right="Nothing of a batch outlives it now. In a training loop the same line costs less, because `backward` frees "
    "the activations; but it still keeps the graph's nodes, and your list still holds tensors on the device.",
)
def leak(answer: Any) -> None:
    """Write my_evaluation(model, batches): the mean squared error of each (inputs, targets) in `batches`, as a list,
    without keeping any activation of a batch that is done.
    """
    expect_function(answer, "model", "batches")
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
    batches = [(torch.rand(5, 6), torch.rand(5, 1)) for _ in range(3)]
    said, saved = _with_saved_tensors(answer, model, batches)
    expect(said, list | tuple, "a list of losses")
    right = [nn.functional.mse_loss(model(x), y).item() for x, y in batches]
    graph = "keeps its whole graph alive, activations included. Keep loss.item()."
    for one in said:
        refuse(
            {f"An entry of your list has a grad_fn: it {graph}": isinstance(one, Tensor) and one.grad_fn is not None}
        )
    refuse({f"There are {len(batches)} batches, but you returned {len(said)} losses.": len(said) != len(batches)})
    values = [number_of(one, "each loss") for one in said]
    if any(abs(one - two) > 1e-6 for one, two in zip(values, right, strict=True)):
        raise Wrong("The losses are not the mean squared errors of the batches.")
    refuse(
        {"The forward pass still saves activations for a backward pass that never comes. Use torch.no_grad().": saved}
    )


def _with_saved_tensors(answer: Callable[..., Any], model: nn.Module, batches: list[Any]) -> tuple[Any, int]:
    """Return what the answer returns, and how many tensors its forward passes saved for a backward pass."""
    saved: list[int] = []

    def note(x: Tensor) -> Tensor:
        saved.append(x.numel())
        return x

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        return answer(model, batches), len(saved)
