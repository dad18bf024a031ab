"""The workloads that a comparison runs: each builds the same work, with the same numbers, on any device."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from course_utils.compare.workloads import AUTOCAST, training_step
from course_utils.data import Scale, air_passengers, make_windows
from course_utils.data.models import AirRNN, ImageCNN
from course_utils.data.shapes import draw_shapes
from course_utils.devices import Device

Build = Callable[[int, Device, str], Callable[[], object]]


@dataclass(frozen=True)
class Workload:
    """One kind of work in any size.

    Attributes:
        name: what a person calls it.
        build: makes the work of a size, on a device, in a precision; what it returns does the work once, and returns
            an answer that is the same on every device, up to rounding.
        size_name: what the size counts, such as "batch".
        unit: what the rate counts, such as "samples".
        items: how many of these one call of a size does.
        precisions: those that `build` knows.
    """

    name: str
    build: Build
    size_name: str = "size"
    unit: str = "calls"
    items: Callable[[int], float] = lambda size: 1.0
    precisions: tuple[str, ...] = ("fp32",)

    @classmethod
    def of(cls, work: "Workload | Callable") -> "Workload":
        """Return a workload as it is, and make one of a function of your own.

        Args:
            work: a workload, or `work(size, device)`, where `device` is a `torch.device`. It returns a function
                without arguments that does the work once and returns its answer.

        Raises:
            TypeError: it is neither.
        """
        if isinstance(work, cls):
            return work
        if not callable(work):
            raise TypeError(
                f"a workload was requested as {work!r}, which is no Workload and no function. Pass one of "
                f"{', '.join(SUITE)} from course_utils.compare.suite.SUITE, or a function of (size, device)."
            )
        name = getattr(work, "__name__", type(work).__name__)
        return cls(name, lambda size, device, precision: work(size, device.torch_device))


def build_seeded(workload: Workload, size: int, device: Device, precision: str) -> Callable[[], object]:
    """Build the work with the same random numbers whatever the device, and leave the caller's generator alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return workload.build(size, device, precision)


def dtype_of(precision: str) -> torch.dtype:
    """Return the type of the numbers in memory for a precision."""
    return AUTOCAST.get(precision, torch.float32)


def numbers(shape: tuple[int, ...], device: Device, precision: str) -> torch.Tensor:
    """Return the same random numbers on any device: drawn here as float32, rounded, and moved."""
    return torch.randn(shape).to(dtype_of(precision)).to(device.torch_device)


def _rnn(size: int, device: Device, precision: str) -> Callable[[], torch.Tensor]:
    series, _ = air_passengers()
    windows = make_windows(Scale.fit(series).apply(series), 20)
    picks = torch.arange(size) % len(windows[0])  # there are 101 windows: a larger batch holds them several times
    inputs, targets = (part[picks] for part in windows)
    return training_step(AirRNN(), inputs, targets, nn.functional.mse_loss, device, precision)


def _cnn(size: int, device: Device, precision: str) -> Callable[[], torch.Tensor]:
    images, labels = draw_shapes(size, seed=42)
    return training_step(ImageCNN(), images, labels, nn.functional.cross_entropy, device, precision)


def _cnn_with_copy(size: int, device: Device, precision: str) -> Callable[[], torch.Tensor]:
    here = draw_shapes(size, seed=42)
    if device.kind == "cpu":  # the batch is where the work is: nothing to copy
        return training_step(ImageCNN(), *here, nn.functional.cross_entropy, device, precision)
    there = [part.to(device.torch_device) for part in here]
    step = training_step(ImageCNN(), *there, nn.functional.cross_entropy, device, precision)

    def copy_and_step() -> torch.Tensor:
        for target, source in zip(there, here, strict=True):
            target.copy_(source)
        return step()

    return copy_and_step


def _product(size: int, device: Device, precision: str) -> Callable[[], torch.Tensor]:
    left, right = (numbers((size, size), device, precision) for _ in range(2))
    return lambda: left @ right


def _elementwise(size: int, device: Device, precision: str) -> Callable[[], torch.Tensor]:
    left, right = (numbers((size,), device, precision) for _ in range(2))
    out = torch.empty_like(left)  # else large results cost fresh memory at every call
    return lambda: torch.add(left, right, alpha=2, out=out)


def _copy(size: int, device: Device, precision: str) -> Callable[[], torch.Tensor]:
    here = torch.randn(size).to(dtype_of(precision))
    return lambda: here.to(device.torch_device, copy=True)


ALL = ("fp32", "tf32", "bf16", "fp16")
RNN_STEP = Workload("RNN step", _rnn, "batch", "samples", float, ("fp32", "tf32", "bf16"))
CNN_STEP = Workload("CNN step", _cnn, "batch", "samples", float, ("fp32", "tf32", "bf16"))
CNN_WITH_COPY = Workload("CNN step and copy", _cnn_with_copy, "batch", "samples", float, CNN_STEP.precisions)
PRODUCT = Workload("Matrix product", _product, "side", "FLOP", lambda side: 2.0 * side**3, ALL)
ELEMENTWISE = Workload("Elementwise", _elementwise, "elements", "elements", float, ("fp32", "bf16", "fp16"))
COPY = Workload("Copy to the device", _copy, "elements", "elements", float, ("fp32", "bf16", "fp16"))
SUITE = {work.name: work for work in (RNN_STEP, CNN_STEP, CNN_WITH_COPY, PRODUCT, ELEMENTWISE, COPY)}
