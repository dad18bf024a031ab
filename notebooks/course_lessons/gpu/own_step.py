"""One training step of the reader's own model, timed on the CPU and on the GPU."""

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import nn

from course_utils.devices import Device, pick_device
from course_utils.text import format_seconds, text_table
from course_utils.timing import time_call

GAIN = 1.5  # below it, what a GPU saves is hardly worth the change


@dataclass(frozen=True)
class StepTimes:
    """What a training step takes, by device and precision, slowest way first: the CPU."""

    seconds: dict[str, float]

    @property
    def verdict(self) -> str:
        """A sentence on whether the GPU pays."""
        names = list(self.seconds)
        if len(names) == 1:
            return (
                "There is no GPU here to compare with: run this cell on one, "
                "or let lesson 7 estimate it."
            )
        best = min(names[1:], key=self.seconds.__getitem__)
        gain = self.seconds[names[0]] / self.seconds[best]
        if gain < 1:
            return f"The CPU is faster, {1 / gain:.1f} times: the steps are too small for a GPU."
        if gain < GAIN:
            return f"{best} is {gain:.1f} times as fast: hardly worth it. Try a larger batch."
        return f"{best} is {gain:.1f} times as fast as the CPU: move this training to the GPU."

    def __repr__(self) -> str:
        rows = [(name, format_seconds(seconds)) for name, seconds in self.seconds.items()]
        return f"{text_table(('one training step', 'measured'), rows)}\n{self.verdict}"


def time_step(
    model: nn.Module,
    loader: Iterable,
    loss_function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    *,
    max_s: float = 3.0,
) -> StepTimes:
    """Measure a training step on the CPU and, where there is one, on the GPU.

    A step copies the batch to the device, and has a forward and a backward pass and an Adam update.
    The model itself is left as it is.

    Args:
        model: maps a batch of inputs to what the loss function takes.
        loader: yields (inputs, targets); the first batch is used.
        loss_function: takes the model's output and the targets.
        max_s: seconds to spend on each measurement, about.
    """
    batch = next(iter(loader))
    cpu, best = pick_device("cpu"), pick_device()
    seconds = {"CPU, fp32": _time_on(cpu, None, model, batch, loss_function, max_s)}
    if best.kind == "cuda":
        half = torch.float16
        if torch.cuda.get_device_capability(best.torch_device) >= (8, 0):
            half = torch.bfloat16
        for name, dtype in (("fp32", None), ("16 bits", half)):
            found = _time_on(best, dtype, model, batch, loss_function, max_s)
            seconds[f"{best.name}, {name}"] = found
    return StepTimes(seconds)


def _time_on(
    device: Device,
    half: torch.dtype | None,
    model: nn.Module,
    batch: tuple[torch.Tensor, torch.Tensor],
    loss_function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    max_s: float,
) -> float:
    where = device.torch_device
    network = copy.deepcopy(model).to(where)
    optimizer = torch.optim.Adam(network.parameters())
    scaler = torch.amp.GradScaler(where.type, enabled=half is torch.float16)
    inputs, targets = batch

    def step() -> None:
        with torch.autocast(where.type, half, enabled=half is not None):
            loss = loss_function(network(inputs.to(where)), targets.to(where))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return time_call(step, device=device, max_s=max_s).median_s
