"""Does it fit? The memory of a training step, estimated before anything is allocated."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from course_utils.estimate.memory_result import Memory
from course_utils.estimate.memory_step import (
    KINDS,
    OPTIMIZERS,
    Moment,
    Optimizer,
    find_blocks,
    follow,
)
from course_utils.estimate.no_data import HALF, WHOLE, Step, positive

PRECISIONS = ("fp32", "tf32", *HALF, *WHOLE)


@torch.inference_mode(False)
def estimate_memory(
    model: nn.Module,
    inputs: Any,
    *,
    batch: int | None = None,
    optimizer: str | Optimizer = "adam",
    precision: str = "fp32",
    checkpointing: bool | type[nn.Module] | tuple[type[nn.Module], ...] = False,
    shards: int = 1,
    training: bool = True,
    keep_gradients: bool = False,
) -> Memory:
    """Estimate the memory of a step without allocating any.

    A copy of the model without data goes through two steps, of `batch` and of twice as many
    samples, while every allocation is counted. Memory that a kernel needs only while it runs is not
    seen; on a GPU, a share fitted on published trainings stands for it. All results, added up,
    stand for the loss; to see a loss of your own, let the model's `forward` return it.

    Args:
        model: any module, on any device; it is not touched.
        inputs: one example input, as for `count_work`; its first dimension is the batch.
        batch: samples in a step on one device, or None to take the example's.
        optimizer: "sgd", "momentum", "adam", "adamw", or a function of the parameters that makes
            your own.
        precision: "fp32", "tf32", "fp16" or "bf16" (automatic mixed precision, as "amp"),
            "bf16-true" or "fp16-true".
        checkpointing: recompute activations in the backward pass; for True, in each block of the
            model's longest `nn.Sequential` or `nn.ModuleList`, else in each module of the class
            that you pass.
        shards: devices that share parameters, gradients and optimizer state, as with FSDP.
        training: forward, backward and optimizer, or the forward pass alone.
        keep_gradients: they stay from step to step, as they do when they are accumulated.

    Raises:
        ValueError: a number is not positive, a name unknown, or nothing in the model is trained.
        RuntimeError: an operation of the model needs data; the message names it.
    """
    positive("shards", shards)
    if precision not in PRECISIONS:
        raise ValueError(f"unknown precision {precision!r}. Pass one of {', '.join(PRECISIONS)}.")
    if not callable(optimizer) and optimizer not in OPTIMIZERS:
        known = ", ".join(OPTIMIZERS)
        raise ValueError(
            f"unknown optimizer {optimizer!r}. Pass {known}, or a function of the parameters."
        )
    name = (
        optimizer
        if isinstance(optimizer, str)
        else getattr(optimizer, "__name__", type(optimizer).__name__)
    )
    make: Any = optimizer if callable(optimizer) else OPTIMIZERS[optimizer]
    one = Step(model, inputs, batch, precision, training)
    moments, more = follow(one, make, checkpointing, keep_gradients), list[Moment]()
    with suppress(RuntimeError):  # some models take no other batch
        more = follow(
            Step(model, inputs, 2 * one.batch, precision, training),
            make,
            checkpointing,
            keep_gradients,
        )
    growth = _growth(moments, more, one.batch) if len(moments) == len(more) else ()
    found = Memory(one.batch, precision, name, shards, training, tuple(moments), growth)
    return found if shards == 1 else _shared(found, model)


@torch.inference_mode(False)
def needed_bytes(
    model: nn.Module, inputs: Any, batch: int, precision: str, training: bool
) -> float:
    """Return what a step, with Adam in training, needs of a GPU's memory; it is followed once, for
    this batch alone.
    """
    moments = follow(Step(model, inputs, batch, precision, training), OPTIMIZERS["adam"])
    return Memory(batch, precision, "adam", 1, training, tuple(moments), ()).needed_bytes


def _growth(moments: list[Moment], more: list[Moment], batch: int) -> tuple[float, ...]:
    return tuple(
        (high.activations - low.activations) / batch
        for low, high in zip(moments, more, strict=True)
    )


def _shared(memory: Memory, model: nn.Module) -> Memory:
    # FSDP keeps a share of every parameter, and puts together the block that computes and the one
    # that comes next.
    kind = WHOLE.get(memory.precision)  # what the weights are kept in, where that is not their own
    modules = [model, *(find_blocks(model) or [model])]
    whole, *sizes = (
        sum(p.numel() * (kind or p.dtype).itemsize for p in module.parameters())
        for module in modules
    )
    # each device updates its own share, so what the optimizer makes meanwhile is a share as well
    moments = tuple(
        one._replace(
            **{
                k: getattr(one, k) // memory.shards
                for k in KINDS[: 4 if one.phase == "optimizer" else 3]
            }
        )
        for one in memory.moments
    )
    return replace(
        memory, moments=moments, gathered=min(whole, whole - sum(sizes) + 2 * max(sizes))
    )
