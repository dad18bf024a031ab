"""Count what a step of a model does: operations, bytes and kernels, without its data."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import flop_registry

from course_tools.estimate.chips import PRECISIONS
from course_tools.estimate.counting.fake_step import FakeStep, Loss, operands
from course_tools.estimate.counting.gpu_kernels import OneCall
from course_tools.estimate.counting.values import BOXES
from course_tools.estimate.counting.work import UPDATE_BYTES, Op, Work, sums_by_kind

# No kernel runs for these: they allocate, or they give the same memory another shape.
_FREE = """
    empty empty_like empty_strided new_empty new_empty_strided _unsafe_view unsafe_split
    unsafe_split_with_sizes lift_fresh _reshape_alias set_ detach alias _local_scalar_dense
    _record_function_enter_new _record_function_exit
"""
FREE = frozenset(_FREE.split())
# A batch norm that learns goes over its input once for the statistics and once more to use them,
# both ways.
TWICE = {"native_batch_norm", "native_batch_norm_backward", "_native_batch_norm_legit"}


@torch.inference_mode(False)  # in that mode `linear` is one operation, and nothing learns
def count_work(
    model: nn.Module,
    inputs: Any,
    *,
    batch: int | None = None,
    precision: str = "bf16",
    training: bool = True,
    loss: Loss | None = None,
    batch_dim: int | None = None,
) -> Work:
    """Count the operations, bytes and kernels of one step of `model`, in a second or two.

    A copy of the model runs on PyTorch's fake tensors, which have shapes and no data, and take no
    memory. The model itself is not touched. The optimizer of a training step is Adam.

    Args:
        model: any module, on any device.
        inputs: one example input: a tensor, a tuple of positional arguments or a dict of keyword
            arguments (such as a tokenizer returns), nested as the model wants them. Their content
            does not matter. The first dimension of the first tensor is the batch; every tensor that
            has the same size there gets the same batch. A list of images in a tuple, (3, height,
            width) each, as detectors take them, is a batch of so many.
        batch: samples in a step, or None to take the example's.
        precision: "fp32", "tf32", "fp16" or "bf16"; the last two are automatic mixed precision,
            with its casts.
        training: count forward, backward and optimizer, or the forward pass alone.
        loss: a function of what the model returns, which makes its own targets, such as
            `lambda out: torch.nn.functional.cross_entropy(out, out.argmax(1))`. None takes the loss
            that the model returns, as those of Transformers do when they get labels. Without one,
            cross-entropy is added to scores of more than 1,000 classes, and the sum of all results
            stands for the loss of other models. The work says so.
        batch_dim: which dimension is the batch, or None for the first.

    Returns:
        The counted work.

    Raises:
        ValueError: the precision is unknown, the batch is not a positive integer, there is no
            tensor among the inputs, or their first dimension is the time of a recurrent layer.
        RuntimeError: an operation of the model needs data, so that it cannot be counted; the
            message names it.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"unknown precision {precision!r}. Pass one of {', '.join(PRECISIONS)}.")
    step = FakeStep(model, inputs, batch, precision, training, loss, batch_dim)
    counter = Counter()
    step.run(counter.note)
    return counter.work(step)


class Counter:
    """Counts the operations of a step while it runs."""

    def __init__(self) -> None:
        self.ops: list[Op] = []

    def note(self, phase: str, func: Any, given: Any, out: Any) -> None:
        """Count an operation; see `FakeStep.run`."""
        if phase == "optimizer":
            return  # one kernel stands for it, see `update`
        if isinstance(func, OneCall):
            moved, made = _moved(given, out)
            self.ops.append(Op(func.name, "recurrent", func.flops, moved, made, func.kernels))
        elif not (func.is_view or func.overloadpacket.__name__ in FREE):
            self.ops.append(_op(func.overloadpacket, given, out))

    def work(self, step: FakeStep, optimizer: str = "adam") -> Work:
        """Return what was counted of a step that has run, and the update of an optimizer."""
        parameters = list(step.model.parameters())
        ops, assumed = list(self.ops), list(step.assumed)
        if step.training:
            trained = sum(p.numel() for p in parameters if p.grad is not None)
            ops.append(update(float(trained), optimizer))
            if optimizer not in UPDATE_BYTES:
                assumed.append(f"the update of {optimizer} takes as long as Adam's")
        return Work(
            batch=step.batch,
            parameters=sum(p.numel() for p in parameters),
            training=step.training,
            precision=step.precision,
            **sums_by_kind(ops),
            unaligned=sum(op.unaligned for op in ops),
            channels_last=step.channels_last,
            loss_counted=step.loss_counted and step.training,
            detects=BOXES in assumed,
            assumed=tuple(assumed),
            ops=tuple(ops),
        )


def update(trained: float, optimizer: str) -> Op:
    """Return an optimizer's update of so many numbers: one kernel for all parameters together.

    Args:
        trained: how many numbers are updated.
        optimizer: a key of `UPDATE_BYTES`; any other is counted as Adam.
    """
    name = optimizer if optimizer in UPDATE_BYTES else "adam"
    return Op(f"_foreach_{name}", "other", 0.0, UPDATE_BYTES[name] * trained, trained)


def size_bytes(x: Tensor) -> int:
    """Return the bytes behind a tensor; what `expand` repeats is read once."""
    return x.element_size() * math.prod(
        n for n, stride in zip(x.shape, x.stride(), strict=True) if stride
    )


def _moved(given: Any, out: Any) -> tuple[float, float]:
    """Return the bytes that an operation reads and writes, and the numbers in its result."""
    results = operands(out)
    moved = sum(map(size_bytes, [*operands(given), *results]))
    return float(moved), float(sum(x.numel() for x in results))


def _is_unaligned(x: Tensor) -> bool:
    """Return whether rows of a matrix begin elsewhere than at multiples of 4 bytes."""
    matrix = min(x.shape[-2:]) > 1
    return matrix and max(x.stride()[-2:]) * x.element_size() % 4 != 0


def _kind_of_convolution(args: Any, backward: bool) -> str:
    image, weight = (args[1], args[2]) if backward else (args[0], args[1])
    if image.dim() == 5:
        return "convolution3d"
    groups = args[9] if backward else args[8]
    return "depthwise" if groups == image.shape[1] > 1 and weight.shape[1] == 1 else "convolution"


def _is_causal(name: str, args: Any) -> bool:
    """Return whether a kernel of `gpu_kernels.attention` was asked for causal attention."""
    places = {
        "_scaled_dot_product_efficient_attention": 6,
        "_scaled_dot_product_efficient_attention_backward": 11,
    }
    place = places.get(name, len(args))
    return len(args) > place and args[place] is True


def _op(packet: Any, given: tuple[Any, dict[str, Any]], out: Any) -> Op:
    (args, kwargs), name = given, packet.__name__
    formula = flop_registry.get(packet)
    flops = float(formula(*args, **kwargs, out_val=out)) if formula else 0.0
    moved, made = _moved(given, out)
    kind = "other" if not flops else "attention" if "attention" in name else "matrix"
    if kind == "attention" and _is_causal(name, args):
        flops /= 2  # the kernel leaves out what lies above the diagonal
    if name.startswith("convolution"):
        kind = _kind_of_convolution(args, backward=name.endswith("backward"))
    if name == "convolution_backward":
        grad, image, weight, needed = args[0], args[1], args[2], args[10]
        # The registry's formula takes every group of a grouped convolution for a whole one; a
        # transposed convolution has its roles exchanged.
        pixels = (image if args[7] else grad).numel()
        flops = 2.0 * pixels * math.prod(weight.shape[1:]) * sum(needed[:2])
        moved += size_bytes(grad) if all(needed[:2]) else 0  # read by two kernels
    if name == "embedding":  # reads the rows that it looks up, not the whole table
        moved = float(sum(map(size_bytes, [args[1], out, out])))
    if name in TWICE and (name.endswith("backward") or args[5]):
        moved += sum(map(size_bytes, operands(given)))
    unaligned = 0.0
    if kind == "matrix" and any(_is_unaligned(x) for x in [*operands(args), out] if x.dim() > 1):
        unaligned = flops
    return Op(name, kind, flops, moved, made, unaligned=unaligned)
