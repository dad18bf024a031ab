"""Recurrent layers, counted as the one call that a GPU's library makes of them, and not time step
by time step.

Without data PyTorch takes an LSTM apart into a dozen operations for each time step. On a GPU, cuDNN
runs the layer: its kernels follow each other without Python in between, about two for each time
step in the forward pass and three in the backward pass (fewer where a layer is small enough for a
persistent kernel). So the layer becomes one operation here. J. Appleyard, T. Kocisky and P.
Blunsom, Optimizing Performance of Recurrent Neural Networks on GPUs (2016).
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
KERNELS = {"recurrent": 2, "recurrent_backward": 3}


def _operation(name: str, schema: str) -> Any:
    """Return an operation that has shapes and no data."""

    def run(*given: Any) -> list[Tensor]:
        raise NotImplementedError(f"{name} has shapes and no data.")

    return torch.library.custom_op(f"course_utils::{name}", run, mutates_args=(), schema=schema)


# The schemas in words: torch 2.6 does not read them from the annotations.
GIVEN = "Tensor x, Tensor[] weights, Tensor h, SymInt steps"
recurrent = _operation("recurrent", f"({GIVEN}, SymInt gates, SymInt ways) -> Tensor[]")
recurrent_backward = _operation(
    "recurrent_backward", f"({GIVEN}, Tensor grad, Tensor kept) -> Tensor[]"
)


@recurrent.register_fake
def _(
    x: Tensor, weights: Sequence[Tensor], h: Tensor, steps: int, gates: int, ways: int
) -> list[Tensor]:
    """Stand for all layers: from x (in either order of batch and time) to its result, h, c, and
    what is kept.
    """
    hidden = weights[0].shape[0] // gates
    cell = h.new_empty(*h.shape[:-1], hidden)
    # the gates and a state of each time step
    kept = x.new_empty(h.shape[0], h.shape[1], steps, hidden * (gates + 1))
    return [x.new_empty(*x.shape[:-1], ways * h.shape[-1]), torch.empty_like(h), cell, kept]


@recurrent_backward.register_fake
def _(
    x: Tensor, weights: Sequence[Tensor], h: Tensor, steps: int, grad: Tensor, kept: Tensor
) -> list[Tensor]:
    """Stand for the backward pass: the gradients of x, h and the weights."""
    return [torch.empty_like(tensor) for tensor in (x, h, *weights)]


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    x, weights, h, ctx.steps, _, _ = inputs
    ctx.save_for_backward(x, h, output[-1], *weights)


def _backward(ctx: Any, grads: list[Tensor]) -> Any:
    x, h, kept, *weights = ctx.saved_tensors
    for_x, for_h, *for_weights = recurrent_backward(x, weights, h, ctx.steps, grads[0], kept)
    return for_x, for_weights, for_h, None, None, None


recurrent.register_autograd(_backward, setup_context=_keep)


def layers(name: str, x: Tensor, *given: Any) -> tuple[Tensor, ...]:
    """Return what torch.lstm, torch.gru, torch.rnn_tanh or torch.rnn_relu would, counted as one
    operation.

    Args:
        x: (time, batch, features), or (batch, time, features) where the last of `given` says so;
            (rows, features) if it is packed.
        given: the first hidden state (for an LSTM with its cell), the weights of all layers,
            has_biases, num_layers, dropout, train, bidirectional, batch_first. A packed sequence
            has the sizes of its batches, one for each time step, before the state, and no
            batch_first.
    """
    if isinstance(given[1], list):
        state, weights, *_, both_ways, batch_first = given
        steps = x.shape[int(batch_first)]
    else:
        sizes, state, weights, *_, both_ways = given
        steps = len(sizes)
    h = state[0] if name == "lstm" else state
    out, h, c, _ = recurrent(x, list(weights), h, steps, GATES[name], 1 + both_ways)
    return (out, h, c) if name == "lstm" else (out, h)


def amounts(
    name: str, x: Tensor, weights: Sequence[Tensor], h: Tensor, steps: int
) -> tuple[float, int]:
    """Return the arithmetic operations and the kernels of `recurrent` or of its backward pass."""
    rows = x.numel() // x.shape[-1]
    forward = 2.0 * rows * sum(weight.numel() for weight in weights if weight.dim() == 2)
    return forward * (2 if name.endswith("backward") else 1), KERNELS[name] * steps * h.shape[0]
