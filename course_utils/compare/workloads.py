"""Pieces of work to measure on any device: a training step of each model, and a product of matrices."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import nn

from course_utils.data import Scale, air_passengers, make_windows
from course_utils.data.models import AirRNN, ImageCNN
from course_utils.data.shapes import draw_shapes
from course_utils.devices import Device
from course_utils.moves import to_device

AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
PRECISIONS = ("fp32", "tf32", *AUTOCAST)


def rnn_step(device: Device, batch: int = 16) -> Callable[[], torch.Tensor]:
    """Return a function that takes one training step of the 481-parameter RNN on a batch that is on the device."""
    series, _ = air_passengers()
    inputs, targets = make_windows(Scale.fit(series).apply(series), 20)
    return training_step(AirRNN(), inputs[:batch], targets[:batch], nn.functional.mse_loss, device, "fp32")


def cnn_step(device: Device, batch: int, precision: str = "fp32") -> Callable[[], torch.Tensor]:
    """Return a function that takes one training step of the image CNN on a batch that is on the device.

    Args:
        device: where to work.
        batch: images in the batch.
        precision: one of `PRECISIONS`. "bf16" and "fp16" run under autocast; whether "fp32" and "tf32" differ is
            decided by `using_tf32`, around the call.

    Raises:
        ValueError: there is no such precision.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision {precision!r} was requested, but there are: {', '.join(PRECISIONS)}.")
    images, labels = draw_shapes(batch, seed=42)
    return training_step(ImageCNN(), images, labels, nn.functional.cross_entropy, device, precision)


def training_step(model, inputs, targets, loss_fn, device: Device, precision: str) -> Callable[[], torch.Tensor]:
    """Return a function that takes one training step with Adam on one batch, and returns its loss."""
    model, inputs, targets = to_device((model, inputs, targets), device)
    # Without capturable, Adam counts its steps on the host, and a CUDA graph would repeat step 1 for ever. XLA has no
    # fused kernel: it fuses what it compiles.
    fast = {"foreach": True} if device.kind == "xla" else {"fused": True, "capturable": device.kind == "cuda"}
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, **fast)
    dtype = AUTOCAST.get(precision)

    def step() -> torch.Tensor:
        with torch.autocast(device.kind, dtype) if dtype else nullcontext():
            loss = loss_fn(model(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


def product(device: Device, side: int, dtype: torch.dtype) -> Callable[[], torch.Tensor]:
    """Return a function that multiplies two square matrices of random numbers: 2 x side^3 floating-point operations.

    Random, since a chip that multiplies zeros draws less power and runs faster than it ever does in earnest.
    """
    left, right = (torch.randn(side, side, device=device.torch_device, dtype=dtype) for _ in range(2))
    out = torch.empty_like(left)
    return lambda: torch.mm(left, right, out=out)


@contextmanager
def using_tf32(allowed: bool) -> Iterator[None]:
    """Let float32 products and convolutions on NVIDIA GPUs round their inputs to TF32 inside the block, or forbid it.

    PyTorch's default is mixed: convolutions and RNNs may, products may not. torch 2.9 renamed the switches.
    Source: PyTorch documentation, CUDA semantics, section on TensorFloat-32.
    """
    cuda, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    if hasattr(cuda, "fp32_precision"):
        switches, name, value = (cuda, cudnn.conv, cudnn.rnn), "fp32_precision", "tf32" if allowed else "ieee"
    else:
        switches, name, value = (cuda, cudnn), "allow_tf32", allowed
    before = [getattr(switch, name) for switch in switches]
    for switch in switches:
        setattr(switch, name, value)
    try:
        yield
    finally:
        for switch, old in zip(switches, before, strict=True):
            setattr(switch, name, old)


def as_cuda_graph(step: Callable[[], object]) -> Callable[[], None]:
    """Record what `step` launches on the current CUDA device, and return a function that launches all of it at once.

    `step` must launch the same kernels on the same memory at every call, and must not look at a result. It runs
    three times first, so that libraries and the optimizer have made what they need, and PyTorch asks for that to
    happen on a stream of its own.
    Source: PyTorch documentation, CUDA semantics, section on CUDA graphs.

    Raises:
        RuntimeError: this machine has no CUDA device.
    """
    if not torch.cuda.is_available():
        raise RuntimeError("a CUDA graph was requested, but this machine has no CUDA device. Call the step as it is.")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    # The graph knows addresses, not tensors: hold the step, or its memory would go to somebody else.
    return lambda _held=step: graph.replay()
