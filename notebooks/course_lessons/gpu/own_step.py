"""One training step of the reader's own model: timed here, and estimated for two cards."""

import copy
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from course_tools.estimate.network import estimate
from course_utils.devices import Device, pick_device
from course_utils.tables import text_table, wrapped
from course_utils.timing import time_call
from course_utils.transfers import to_device
from course_utils.units import format_seconds

CARDS = ("T4", "A100")  # the free card of Colab and Kaggle, and a faster one
# As the table calls them, and as `estimate` does: PyTorch takes tf32 for convolutions in 32 bits.
BITS = {"32 bits": "default", "16 bits": "amp"}
HEADER = ("one training step", "", "time", "times this CPU", "bottleneck")
AGAIN = "Busy machine: run this cell again. What was measured is unreliable, so there is no factor."
GAIN = 1.5  # below it, what a GPU saves is hardly worth the change


@dataclass(frozen=True)
class EstimatedStep:
    """The step on a card that is not here; its seconds lie between two limits, nine times in ten.

    Attributes:
        bottleneck: "launches", "memory" or "arithmetic".
    """

    name: str
    low_s: float
    high_s: float
    bottleneck: str


@dataclass(frozen=True)
class StepTimes:
    """A training step by device and precision: measured seconds, the CPU first, and estimates.

    Attributes:
        missing: why there is no estimate, or "".
        doubts: why a measured time is unreliable, a sentence each.
    """

    seconds: dict[str, float]
    estimates: tuple[EstimatedStep, ...] = ()
    missing: str = ""
    doubts: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """A sentence on whether a GPU is worth it, or that this cannot be told."""
        cpu_s, *gpus_s = self.seconds.values()
        if self.doubts and (gpus_s or self.estimates):
            return AGAIN
        if not gpus_s:
            return self._without_a_gpu(cpu_s)
        best = min(list(self.seconds)[1:], key=self.seconds.__getitem__)
        gain = cpu_s / self.seconds[best]
        if gain < 1:
            return f"The CPU is faster, {1 / gain:.1f} times: the steps are too small for a GPU."
        if gain < GAIN:
            return f"{best} is {gain:.1f} times as fast: hardly worth it. Try a larger batch."
        return f"{best} is {gain:.1f} times as fast as the CPU: move this training run to the GPU."

    def _without_a_gpu(self, cpu_s: float) -> str:
        if not self.estimates:
            return f"There is no GPU here: run this cell on one. {self.missing}".strip()
        first = self.estimates[0].name.split(",")[0]
        of_first = [one for one in self.estimates if one.name.startswith(f"{first},")]
        best = min(of_first, key=lambda one: one.high_s)
        low, high = cpu_s / best.high_s, cpu_s / best.low_s
        times = f"{_rounded(low)} to {_rounded(high)} times as fast as this CPU"
        worth = "" if low >= GAIN else ", so it may hardly be worth it. Try a larger batch"
        return f"There is no GPU here. Estimated: {best.name} would be {times}{worth}."

    def __repr__(self) -> str:
        cpu_s = next(iter(self.seconds.values()))
        rows = []
        for name, seconds in self.seconds.items():
            gain = "?" if self.doubts else f"{cpu_s / seconds:.1f}"
            rows.append((name, "measured", format_seconds(seconds), gain, ""))
        for one in self.estimates:
            times = f"{format_seconds(one.low_s)} to {format_seconds(one.high_s)}"
            gains = f"{_rounded(cpu_s / one.high_s)} to {_rounded(cpu_s / one.low_s)}"
            gains = "?" if self.doubts else gains
            rows.append((one.name, "estimated", times, gains, one.bottleneck))
        table = text_table(HEADER, rows)
        if self.doubts:
            return "\n".join([self.verdict, *(wrapped(each) for each in self.doubts), "", table])
        return f"{table}\n{self.verdict}"


def _rounded(number: float) -> str:
    """Return a number with two digits, such as "0.4" or "180"."""
    return f"{float(f'{number:.2g}'):g}"


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
    max_s: float = 6.0,
) -> StepTimes:
    """Measure a training step on the CPU and, if there is one, on the GPU; estimate two cards.

    A step copies the batch to the device, and has a forward and a backward pass and an Adam update.
    The model itself is left as it is.

    Args:
        model: maps a batch of inputs to what the loss function takes.
        loader: yields (inputs, targets); the first batch is used.
        loss_function: takes the model's output and the targets.
        max_s: seconds to spend on each measurement, about.
    """
    best = pick_device()
    ways: dict[str, tuple[Device, torch.dtype | None]]
    ways = {"CPU, 32 bits": (pick_device("cpu"), None)}
    if best.kind in ("cuda", "mps", "xpu"):
        ways[f"{best.name}, 32 bits"] = best, None
    if best.kind == "cuda":
        half = fast_half(torch.cuda.get_device_capability(best.torch_device))
        ways[f"{best.name}, 16 bits"] = best, half
    batch, seconds, doubts = next(iter(loader)), {}, []
    for name, (device, low) in ways.items():
        step = _training_step(model, batch, loss_function, device.torch_device, low)
        timing = time_call(step, device=device, max_s=max_s)
        seconds[name] = timing.median_s
        doubts += [f"{name}: {warning}" for warning in timing.warnings]
    estimates: tuple[EstimatedStep, ...] = ()
    missing = ""
    try:
        with warnings.catch_warnings():
            # the estimate repeats the step with twice the samples, and with the same targets
            warnings.filterwarnings("ignore", "Using a target size")
            estimates = _estimate(model, batch, loss_function)
    except (RuntimeError, TypeError, ValueError) as error:
        missing = f"No estimate: {error}"
    return StepTimes(seconds, estimates, missing, tuple(doubts))


class OneInput(nn.Module):
    """A model that gets its inputs as one argument, as in a training loop, also if it is a dict."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Any) -> Any:
        """Return what the model makes of its inputs."""
        return self.model(inputs)


def _estimate(
    model: nn.Module,
    batch: tuple[Tensor, Tensor],
    loss_function: Callable[[Tensor, Tensor], Tensor],
) -> tuple[EstimatedStep, ...]:
    inputs, targets = batch
    found = {}
    for bits, precision in BITS.items():
        answer = estimate(
            OneInput(model),
            {"inputs": inputs},
            loss=lambda outputs: loss_function(outputs, targets),
            devices=CARDS,
            precision=precision,
        )
        for row in answer.rows:
            name = f"{row.name}, {bits}"
            found[name] = EstimatedStep(name, *row.step_interval_s, row.limit)
    return tuple(sorted(found.values(), key=lambda one: one.name.split(",")[0] != CARDS[0]))


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
            loss = loss_function(network(to_device(inputs, device)), to_device(targets, device))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return step
