"""Count what a step of a model does: operations, bytes and kernels, without running it at size or
allocating memory.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import flop_registry

from course_utils.estimate.no_data import Step, tensors
from course_utils.estimate.recurrent import KERNELS, amounts
from course_utils.text import format_bytes, format_count

PRECISIONS = ("fp32", "tf32", "fp16", "bf16")
# No kernel runs for these: they allocate, or they give the same memory another shape.
FREE = {
    "empty",
    "empty_like",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "_unsafe_view",
    "unsafe_split",
}
FREE |= {"unsafe_split_with_sizes", "lift_fresh", "_reshape_alias", "set_", "detach", "alias"}
# A batch norm that learns goes over its input once for the statistics and once more to use them,
# both ways.
TWICE = {"native_batch_norm", "native_batch_norm_backward", "_native_batch_norm_legit"}


@dataclass(frozen=True)
class Op:
    """One operation of a step, as a GPU runs it: counted.

    Attributes:
        name: PyTorch's name of it, such as "addmm".
        kind: "matrix" (a matrix product), "convolution", "attention", "recurrent", or "other".
        flops: arithmetic operations, where a multiply-add is two; 0 for "other".
        bytes_moved: bytes read and written.
        elements: numbers in the results.
        kernels: how many the host launches for it; 1 but for recurrent layers.
    """

    name: str
    kind: str
    flops: float
    bytes_moved: float
    elements: float
    kernels: int = 1


@dataclass(frozen=True)
class Work:
    """What one step of a model does, operation by operation: counted, neither measured nor
    estimated.
    """

    ops: tuple[Op, ...]
    batch: int
    parameters: int
    training: bool
    precision: str

    @property
    def flops(self) -> float:
        """Arithmetic operations of a step, where a multiply-add is two."""
        return sum(op.flops for op in self.ops)

    @property
    def bytes_moved(self) -> float:
        """Bytes that the operations read and write."""
        return sum(op.bytes_moved for op in self.ops)

    @property
    def kernels(self) -> int:
        """How many kernels the host launches."""
        return sum(op.kernels for op in self.ops)

    def __repr__(self) -> str:
        step = "training step" if self.training else "forward pass"
        samples = f"{self.batch:,} sample{'s' * (self.batch != 1)}"
        arithmetic, moved = format_count(self.flops, "FLOP"), format_bytes(self.bytes_moved)
        counted = f"{arithmetic}, {moved} moved, {self.kernels:,} kernels"
        return f"{step} of {samples} in {self.precision}, counted: {counted}"


@torch.inference_mode(False)  # in that mode `linear` is one operation, and nothing learns
def count_work(
    model: nn.Module,
    inputs: Any,
    *,
    batch: int | None = None,
    precision: str = "bf16",
    training: bool = True,
) -> Work:
    """Count the operations, bytes and kernels of one step of `model`, in milliseconds and without
    memory.

    A copy of the model without its weights runs on PyTorch's meta device, which knows shapes and no
    data. The model itself is not touched. In training, the sum of all results stands for the loss,
    and the optimizer is Adam.

    Args:
        model: any module, on any device.
        inputs: one example input: a tensor, a tuple of positional arguments or a dict of keyword
            arguments, nested as the model wants them. Their content does not matter. The first
            dimension of the first tensor is the batch; every tensor that has the same first
            dimension gets the same batch.
        batch: samples in a step, or None to take the example's.
        precision: "fp32", "tf32", "fp16" or "bf16"; the last two are automatic mixed precision,
            with its casts.
        training: count forward, backward and optimizer, or the forward pass alone.

    Returns:
        The counted work.

    Raises:
        ValueError: the precision is unknown, the batch no positive integer, or there is no tensor
            among the inputs.
        RuntimeError: an operation of the model needs data, so that it cannot be counted; the
            message names it.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"unknown precision {precision!r}. Pass one of {', '.join(PRECISIONS)}.")
    step = Step(model, inputs, batch, precision, training)
    ops: list[Op] = []

    def note(phase: str, func: Any, given: Any, out: Any) -> None:
        if not (func.is_view or func.overloadpacket.__name__ in FREE):
            ops.append(_op(func.overloadpacket, given, out))

    step.run(note)
    parameters = list(step.model.parameters())
    if training:
        # Adam reads a parameter, its gradient and two moments, and writes all but the gradient: 7 x
        # 4 bytes in one kernel for all parameters together (PyTorch's foreach), so its launches do
        # not count.
        trained = float(sum(p.numel() for p in parameters if p.grad is not None))
        ops.append(Op("_foreach_adam", "other", 0.0, 28 * trained, trained))
    return Work(tuple(ops), step.batch, sum(p.numel() for p in parameters), training, precision)


def size_bytes(x: Tensor) -> int:
    """Return the bytes behind a tensor; what `expand` repeats is read once."""
    return x.element_size() * math.prod(
        n for n, stride in zip(x.shape, x.stride(), strict=True) if stride
    )


def _op(packet: Any, given: tuple[Any, dict[str, Any]], out: Any) -> Op:
    (args, kwargs), name = given, packet.__name__
    formula = flop_registry.get(packet)
    flops = float(formula(*args, **kwargs, out_val=out)) if formula else 0.0
    inputs, results = tensors(given), tensors(out)
    moved = sum(map(size_bytes, [*inputs, *results]))
    kind = "other" if not flops else "attention" if "attention" in name else "matrix"
    if name.startswith("convolution"):
        kind = "convolution"
    if name == "convolution_backward":
        grad, image, weight, needed = args[0], args[1], args[2], args[10]
        # The registry's formula takes every group of a grouped convolution for a whole one.
        # a transposed convolution has its roles exchanged
        pixels = (image if args[7] else grad).numel()
        flops = 2.0 * pixels * math.prod(weight.shape[1:]) * sum(needed[:2])
        moved += size_bytes(grad) if all(needed[:2]) else 0  # read by two kernels
    if name in KERNELS:
        flops, kernels = amounts(name, *args[:4])
        return Op(name, "recurrent", flops, float(moved), float(results[0].numel()), kernels)
    if name in TWICE and (name.endswith("backward") or args[5]):
        moved += sum(map(size_bytes, inputs))
    return Op(name, kind, flops, float(moved), float(sum(x.numel() for x in results)))
