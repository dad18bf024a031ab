"""Work to measure: each workload builds the same work, with the same numbers, in any size and on
any device.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import nn

from course_utils.data.drawn_images import draw_shapes
from course_utils.data.models import AirRNN, ImageCNN
from course_utils.data.series import Scale, air_passengers, make_windows
from course_utils.devices import Device
from course_utils.moves import to_device
from course_utils.plain_training import fast_adam

DTYPES = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}
Call = Callable[[], torch.Tensor]
EXAMPLE = "def work(size, device): x = torch.randn(size, size).to(device); return lambda: x @ x"


@dataclass(frozen=True)
class Workload:
    """One kind of work in any size."""

    name: str  #: what a person calls it
    #: makes the work for `build(device=..., size=..., precision=...)`; what it returns does the
    # work once, and returns : an answer that is the same on every device, up to rounding
    build: Callable[..., Callable[[], object]]
    size_name: str = "size"  #: what the size counts, such as "batch"
    unit: str = "calls"  #: what the rate counts, such as "samples"
    items: Callable[[int], float] = lambda size: 1.0  #: how many of these one call of a size does
    precisions: tuple[str, ...] = ("fp32",)  #: those that `build` knows

    @classmethod
    def of(cls, work: "Workload | Callable") -> "Workload":
        """Return a workload as it is, and make one of a function of your own.

        Args:
            work: a workload, or `work(size, device)`, where `device` is a `torch.device`. It
                returns a function without arguments that does the work once and returns its answer.

        Raises:
            TypeError: it is neither; or, once it is built, it has returned no function.
        """
        if isinstance(work, Workload):
            return work
        try:
            inspect.signature(work).bind("size", "device")
            fits = not isinstance(work, nn.Module)  # which takes any arguments until it runs
        except (TypeError, ValueError):
            fits = False
        if not fits:
            raise TypeError(
                f"a workload was requested as {work!r:.99}, which is neither a Workload nor a "
                "function of (size, "
                f"device). Pass one of {', '.join(SUITE)} from course_utils.compare.SUITE, or "
                f"your own: {EXAMPLE}"
            )
        name = getattr(work, "__name__", type(work).__name__)

        def build(device: Device, size: int, precision: str) -> Callable[[], object]:
            call = work(size, device.torch_device)
            if not callable(call):
                returned = f"the workload {name!r} returned {type(call).__name__}"
                raise TypeError(
                    f"{returned}, but it has to return a function without arguments "
                    f"that does the work, such as: {EXAMPLE}"
                )
            return call

        return cls(name, build, precisions=("fp32", "tf32"))


def build_seeded(
    workload: Workload, size: int, device: Device, precision: str
) -> Callable[[], object]:
    """Build the work with the same random numbers on any device, and leave the caller's generator
    and defaults.
    """
    with torch.random.fork_rng(devices=[]), torch.device("cpu"), ExitStack() as undo:
        undo.callback(torch.set_default_dtype, torch.get_default_dtype())
        torch.set_default_dtype(torch.float32)
        torch.default_generator.manual_seed(0)
        return workload.build(device=device, size=size, precision=precision)


def rnn_step(device: Device, size: int = 16, precision: str = "fp32") -> Call:
    """Return a function that takes one training step of the 481-parameter RNN on a batch that is on
    the device.
    """
    series, _ = air_passengers()
    windows = make_windows(Scale.fit(series).apply(series), 20)
    # there are 101 windows: a larger batch holds them several times
    picks = torch.arange(size) % len(windows[0])
    inputs, targets = (part[picks] for part in windows)
    return training_step(AirRNN(), inputs, targets, nn.functional.mse_loss, device, precision)


def cnn_step(device: Device, size: int, precision: str = "fp32", copy: bool = False) -> Call:
    """Return a function that takes one training step of the image CNN on a batch that is on the
    device.

    "bf16" and "fp16" run under autocast; `using_tf32`, around the call, decides whether "fp32" and
    "tf32" differ. With `copy`, each step first copies its batch from the host; on a CPU that is the
    same batch, and no copy.
    """
    here = draw_shapes(size, seed=42)
    there = to_device(here, device)
    step = training_step(ImageCNN(), *there, nn.functional.cross_entropy, device, precision)

    def copy_and_step() -> torch.Tensor:
        for target, source in zip(there, here, strict=True):
            target.copy_(source)
        return step()

    return copy_and_step if copy else step


def training_step(
    model: nn.Module,
    inputs: torch.Tensor,
    targets: torch.Tensor,
    loss_fn: Callable,
    device: Device,
    precision: str,
) -> Call:
    """Return a function that takes one training step with Adam on one batch, and returns its
    loss.
    """
    dtype = DTYPES[precision]
    model, inputs, targets = to_device((model, inputs, targets), device)
    optimizer = fast_adam(model.parameters(), device.torch_device, 1e-3)

    def step() -> torch.Tensor:
        with nullcontext() if dtype is torch.float32 else torch.autocast(device.kind, dtype):
            loss = loss_fn(model(inputs), targets)
        loss.backward()
        # Adam refuses to be captured without this, and warns of it when nothing is captured
        if device.kind == "cuda":
            optimizer.param_groups[0]["capturable"] = torch.cuda.is_current_stream_capturing()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


def product(device: Device, size: int, precision: str = "fp32") -> Call:
    """Return a function that multiplies two square matrices with this side: 2 x size^3
    floating-point operations.

    Random numbers, since a GPU multiplies predictable ones faster: H. He, Strangely, Matrix
    Multiplications on GPUs Run Faster When Given "Predictable" Data! (2024).
    """
    left, right = (numbers((size, size), device, precision) for _ in range(2))
    return lambda: left @ right


def _elementwise(device: Device, size: int, precision: str) -> Call:
    left, right = (numbers((size,), device, precision) for _ in range(2))
    out = torch.empty_like(left)  # else large results cost fresh memory at every call
    return lambda: torch.add(left, right, alpha=2, out=out)


def _copy(device: Device, size: int, precision: str) -> Call:
    here = torch.randn(size).to(DTYPES[precision])
    return lambda: here.to(device.torch_device, copy=True)


def numbers(shape: tuple[int, ...], device: Device, precision: str) -> torch.Tensor:
    """Return the same random numbers on any device: drawn here as float32, rounded, and moved."""
    return torch.randn(shape).to(DTYPES[precision]).to(device.torch_device)


@contextmanager
def using_tf32(allowed: bool) -> Iterator[None]:
    """Let float32 products and convolutions on NVIDIA GPUs round their inputs to TF32 inside the
    block, or forbid it.

    PyTorch's default is mixed: convolutions and RNNs may, products may not. torch 2.9 renamed the
    switches.
    Source: PyTorch documentation, CUDA semantics, section on TensorFloat-32.
    """
    backends: Any = torch.backends
    cuda, cudnn = backends.cuda.matmul, backends.cudnn
    choice: tuple[list[Any], str, Any] = ([cuda, cudnn], "allow_tf32", allowed)
    if hasattr(cuda, "fp32_precision"):
        choice = ([cuda, cudnn.conv, cudnn.rnn], "fp32_precision", "tf32" if allowed else "ieee")
    switches, name, value = choice
    with ExitStack() as undo:
        for switch in switches:
            undo.callback(setattr, switch, name, getattr(switch, name))
            setattr(switch, name, value)
        yield


RNN_STEP = Workload("RNN step", rnn_step, "batch", "samples", float, ("fp32", "tf32", "bf16"))
CNN_STEP = Workload("CNN step", cnn_step, "batch", "samples", float, ("fp32", "tf32", "bf16"))
CNN_WITH_COPY = replace(CNN_STEP, name="CNN step and copy", build=partial(cnn_step, copy=True))
PRODUCT = Workload(
    "Matrix product", product, "side", "FLOP", lambda side: 2.0 * side * side * side, tuple(DTYPES)
)
ELEMENTWISE = Workload(
    "Elementwise", _elementwise, "elements", "elements", float, ("fp32", "bf16", "fp16")
)
COPY = Workload(
    "Copy to the device", _copy, "elements", "elements", float, ("fp32", "bf16", "fp16")
)
SUITE = {
    work.name: work for work in (RNN_STEP, CNN_STEP, CNN_WITH_COPY, PRODUCT, ELEMENTWISE, COPY)
}
