"""Work to measure: each workload builds the same work, with the same numbers, in any size and on
any device.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from course_utils.devices import Device

DTYPES = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}
Call = Callable[[], Any]
KEYWORDS = {"device": None, "size": 1, "precision": "fp32"}
EXAMPLE = "def work(size, device): x = torch.randn(size, size).to(device); return lambda: x @ x"


@dataclass(frozen=True)
class Workload:
    """One kind of work in any size."""

    name: str  #: what a person calls it
    #: called as `build(device=..., size=..., precision=...)`, it makes a function that works
    #: once and returns its result, tensors or numbers, the same on every device up to rounding
    build: Callable[..., Call]
    size_name: str = "size"  #: what the size counts, such as "batch"
    unit: str = "calls"  #: what the rate counts, such as "samples"
    items: Callable[[int], float] = lambda size: 1.0  #: how many of these one call of a size does
    precisions: tuple[str, ...] = ("fp32",)  #: those that `build` knows

    @classmethod
    def of(cls, work: "Workload | Callable") -> "Workload":
        """Return a workload as it is, and make one of a function of your own.

        Args:
            work: a workload, or `work(size, device)`, where `device` is a `torch.device`. It
                returns a function without arguments that does the work once and returns its result:
                a tensor, a number, or a list or dict of them.
        """
        if isinstance(work, Workload):
            _check_signature(work.build, work.name, KEYWORDS)
            return work
        name = getattr(work, "__name__", type(work).__name__)
        _check_signature(work, name, {})

        def build(device: Device, size: int, precision: str) -> Call:
            call = work(size, device.torch_device)
            if not callable(call):
                raise TypeError(
                    f"the workload {name!r} returned {type(call).__name__}, but it has to return a "
                    f"function without arguments that does the work, such as: {EXAMPLE}"
                )
            return call

        return cls(name, build, precisions=("fp32", "tf32"))


def _check_signature(build: Callable, name: str, keywords: dict[str, Any]) -> None:
    """Refuse in words a function that cannot be called with what makes the work."""
    if not callable(build):
        raise TypeError(f"{name!r} is no workload: pass a function, such as: {EXAMPLE}")
    try:
        signature = inspect.signature(build)
    except (TypeError, ValueError):  # of a function that is not written in Python
        return
    called, example = "work(size, device)", EXAMPLE
    if keywords:
        called = "build(device=..., size=..., precision=...)"
        example = EXAMPLE.replace("(size, device)", '(size, device, precision="fp32")')
    try:
        signature.bind(**keywords) if keywords else signature.bind(1, "cpu")
    except TypeError:
        raise TypeError(
            f"{name!r} takes {signature}, but is called as {called}. Such as: {example}"
        ) from None
    if not keywords and next(iter(signature.parameters)) == "device":
        raise TypeError(f"{name!r} takes {signature}: swap them, since it is called as {called}.")


def build_seeded(workload: Workload, size: int, device: Device, precision: str) -> Call:
    """Build the work with the same random numbers on any device, and leave the caller's generator
    as it was.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        return workload.build(device=device, size=size, precision=precision)


def product(device: Device, size: int, precision: str = "fp32") -> Call:
    """Return a function that multiplies two square matrices with this side: 2 x size^3
    floating-point operations.

    Random numbers, since a GPU multiplies predictable ones faster: H. He, Strangely, Matrix
    Multiplications on GPUs Run Faster When Given "Predictable" Data! (2024).
    """
    left, right = (_numbers((size, size), device, precision) for _ in range(2))
    return lambda: left @ right


def elementwise(device: Device, size: int, precision: str = "fp32") -> Call:
    """Return a function that computes a + 2 b for arrays of so many elements."""
    left, right = (_numbers((size,), device, precision) for _ in range(2))
    out = torch.empty_like(left)  # else large results cost fresh memory at every call
    return lambda: torch.add(left, right, alpha=2, out=out)


def _numbers(shape: tuple[int, ...], device: Device, precision: str) -> torch.Tensor:
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
    if hasattr(cuda, "fp32_precision"):
        switches, name = [cuda, cudnn.conv, cudnn.rnn], "fp32_precision"
        value: Any = "tf32" if allowed else "ieee"
    else:
        switches, name, value = [cuda, cudnn], "allow_tf32", allowed
    with ExitStack() as undo:
        for switch in switches:
            undo.callback(setattr, switch, name, getattr(switch, name))
            setattr(switch, name, value)
        yield


PRODUCT = Workload(
    name="Matrix product",
    build=product,
    size_name="side",
    unit="FLOP",
    items=lambda side: 2.0 * side * side * side,
    precisions=("fp32", "tf32", "bf16", "fp16"),
)
ELEMENTWISE = Workload(
    name="Elementwise",
    build=elementwise,
    size_name="elements",
    unit="elements",
    items=float,
    precisions=("fp32", "bf16", "fp16"),
)
