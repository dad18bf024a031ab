"""One training step of the reader's own model, timed on the CPU and on the GPU."""

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from course_utils.devices import Device, pick_device
from course_utils.text import format_seconds, text_table
from course_utils.timing import time_call

GAIN = 1.5  # below it, what a GPU saves is hardly worth the change


@dataclass(frozen=True)
class StepTimes:
    """The seconds of a training step, by device and precision; the CPU comes first."""

    seconds: dict[str, float]

    @property
    def verdict(self) -> str:
        """A sentence on whether the GPU pays."""
        cpu_s, *gpus_s = self.seconds.values()
        if not gpus_s:
            there_is = "There is no GPU here to compare with"
            return f"{there_is}: run this cell on one, or let lesson 8 estimate it."
        best = min(list(self.seconds)[1:], key=self.seconds.__getitem__)
        gain = cpu_s / self.seconds[best]
        if gain < 1:
            return f"The CPU is faster, {1 / gain:.1f} times: the steps are too small for a GPU."
        if gain < GAIN:
            return f"{best} is {gain:.1f} times as fast: hardly worth it. Try a larger batch."
        return f"{best} is {gain:.1f} times as fast as the CPU: move this training to the GPU."

    def __repr__(self) -> str:
        rows = [(name, format_seconds(seconds)) for name, seconds in self.seconds.items()]
        return f"{text_table(('one training step', 'measured'), rows)}\n{self.verdict}"


def fast_half(capability: tuple[int, int]) -> torch.dtype:
    """Return the 16-bit format that a CUDA device of this compute capability multiplies fast.

    NVIDIA's tensor cores multiply bfloat16 from 8.0 (Ampere) on, and float16 from 7.0 (Volta) on.
    """
    return torch.bfloat16 if capability >= (8, 0) else torch.float16


def time_step(
    model: nn.Module,
    loader: Iterable,
    loss_function: Callable[[Tensor, Tensor], Tensor],
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
    best = pick_device()
    ways: dict[str, tuple[Device, torch.dtype | None]] = {"CPU, fp32": (pick_device("cpu"), None)}
    if best.kind in ("cuda", "mps", "xpu"):
        ways[f"{best.name}, fp32"] = best, None
    if best.kind == "cuda":
        half = fast_half(torch.cuda.get_device_capability(best.torch_device))
        ways[f"{best.name}, 16 bits"] = best, half
    batch, seconds = next(iter(loader)), {}
    for name, (device, low) in ways.items():
        step = _training_step(model, batch, loss_function, device.torch_device, low)
        seconds[name] = time_call(step, device=device, max_s=max_s).median_s
    return StepTimes(seconds)


def _training_step(
    model: nn.Module,
    batch: tuple[Tensor, Tensor],
    loss_function: Callable[[Tensor, Tensor], Tensor],
    device: torch.device,
    half: torch.dtype | None,
) -> Callable[[], None]:
    network = copy.deepcopy(model).to(device)
    optimizer = torch.optim.Adam(network.parameters())
    scaler = torch.amp.GradScaler(device.type, enabled=half is torch.float16)
    inputs, targets = batch

    def step() -> None:
        with torch.autocast(device.type, half, enabled=half is not None):
            loss = loss_function(network(inputs.to(device)), targets.to(device))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return step
