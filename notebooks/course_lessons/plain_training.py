"""Train in a plain PyTorch loop, on any device."""

from collections.abc import Callable, Iterable

import torch
from torch import nn

from course_utils.xla import run_recorded


def train_plain(
    model: nn.Module,
    inputs: torch.Tensor,
    targets: torch.Tensor,
    *,
    batches: Iterable[torch.Tensor],
    epochs: int,
    on_epoch: Callable[[int, float], None] | None = None,
) -> list[float]:
    """Train a model in place, on the device where it and the data already are.

    It lowers the mean squared error with Adam.

    Args:
        model: maps a batch of inputs to a batch of predictions.
        inputs: (samples, ...).
        targets: (samples, ...), what the predictions are compared with.
        batches: yields the sample indices of each batch, anew for every epoch; see
            `ShuffledBatches`.
        epochs: how often to go through all samples.
        on_epoch: called with the number of the finished epoch, from 1, and its loss.

    Returns:
        The mean loss over the samples for each epoch, measured while the model was learning.

    Raises:
        ValueError: `batches` yielded none in an epoch.
    """
    optimizer = fast_adam(model.parameters(), inputs.device)
    losses = []
    for epoch in range(1, epochs + 1):
        # the sum stays on the device: reading it would wait
        seen, total = 0, torch.zeros((), device=inputs.device)
        # on XLA, so that the zero is data to every step and not a constant in the first
        run_recorded(inputs.device)
        for index in batches:
            loss = nn.functional.mse_loss(model(inputs[index]), targets[index])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            total += loss.detach() * len(index)
            seen += len(index)
            run_recorded(inputs.device)
        if not seen:
            raise ValueError(
                f"epoch {epoch} got no batch. Pass batches that can be iterated over again, "
                "such as a list."
            )
        losses.append(total.item() / seen)
        if on_epoch:
            on_epoch(epoch, losses[-1])
    return losses


def fast_adam(
    parameters: Iterable[nn.Parameter], device: torch.device, learning_rate: float = 1e-3
) -> torch.optim.Adam:
    """Return Adam for parameters on `device`, in the form that makes the fewest device calls."""
    # fused: one call updates all parameters; the default makes several calls for each. XLA has no
    # fused kernel: it fuses what it compiles. There foreach records the fewest operations.
    foreach = device.type == "xla"
    return torch.optim.Adam(parameters, learning_rate, foreach=foreach, fused=not foreach)
