"""Does it fit? The memory of a training step, estimated before anything is allocated."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn

from course_tools.estimate.checks import check_positive
from course_tools.estimate.counting.fake_step import HALF, WHOLE, FakeStep, Loss, Observer
from course_tools.estimate.memory.memory_model import Moment
from course_tools.estimate.memory.memory_result import Memory
from course_tools.estimate.memory.memory_step import OPTIMIZERS, Optimizer, find_blocks, follow

STEP_PRECISIONS = ("fp32", "tf32", *HALF, *WHOLE)


@torch.inference_mode(False)
def estimate_memory(
    model: nn.Module,
    inputs: Any,
    *,
    batch: int | None = None,
    optimizer: str | Optimizer = "adam",
    precision: str = "amp",
    shards: int = 1,
    training: bool = True,
    keep_gradients: bool = False,
    loss: Loss | None = None,
    batch_dim: int | None = None,
) -> Memory:
    """Estimate the memory of a step without allocating any.

    A copy of the model without data goes through two steps, of `batch` and of twice as many
    samples, while every allocation is counted. Memory that a kernel needs only while it runs is not
    seen; on a GPU, a share fitted on published trainings stands for it (see `memory_model`).

    >>> found = estimate_memory(nn.Linear(1000, 1000), torch.ones(1, 1000), batch=8)
    >>> parameters = 1_001_000
    >>> found.needed_bytes > 16 * parameters  # with gradients and Adam's two moments
    True

    Activation checkpointing counts where the model does it itself, as those of Transformers do
    after `gradient_checkpointing_enable()`.

    The loss is counted where `loss` is given or the model returns its own, as those of Transformers
    do when they get labels. Cross-entropy is added to scores of more than 1,000 classes. Otherwise
    all results, added up, stand for the loss. The result says which.

    Args:
        model: any module, on any device; it is not touched.
        inputs: one example input, as for `count_work`; its first dimension is the batch.
        batch: samples in a step on one device, or None to take the example's.
        optimizer: "sgd", "momentum", "adam", "adamw" as PyTorch runs them on a GPU, "adam8bit" as
            bitsandbytes does, or a function of the parameters that makes your own, such as
            `functools.partial(torch.optim.AdamW, fused=True)`.
        precision: "amp", "fp16" or "bf16" (automatic mixed precision), "bf16-true" or "fp16-true"
            (the weights too), "fp32" or "tf32".
        shards: devices that share parameters, gradients and optimizer state, as with FSDP.
        training: forward, backward and optimizer, or the forward pass alone.
        keep_gradients: they stay from step to step, as they do when they are accumulated.
        loss: a function of what the model returns, which makes its own targets, such as
            `lambda out: torch.nn.functional.cross_entropy(out, out.argmax(1))`.
        batch_dim: which dimension is the batch, or None for the first.

    Raises:
        ValueError: a number is not positive, a name unknown, or nothing in the model is trained.
        RuntimeError: an operation of the model needs data; the message names it.
    """
    check_positive("shards", shards)
    if precision not in STEP_PRECISIONS:
        raise ValueError(
            f"unknown precision {precision!r}. Pass one of {', '.join(STEP_PRECISIONS)}."
        )
    make_step = partial(
        FakeStep,
        model,
        inputs,
        precision=precision,
        training=training,
        loss=loss,
        batch_dim=batch_dim,
    )
    _, found = follow_two_batches(make_step, batch, optimizer, keep_gradients=keep_gradients)
    return found if shards == 1 else sharded(found, model, shards)


@torch.inference_mode(False)
def follow_two_batches(
    make_step: Callable[..., FakeStep],
    batch: int | None,
    optimizer: str | Optimizer,
    *,
    keep_gradients: bool = False,
    also: Observer | None = None,
) -> tuple[FakeStep, Memory]:
    """Return a step that has run, and the memory of it at any batch.

    Args:
        make_step: makes the step for `batch=`.
        batch, optimizer, keep_gradients: as for `estimate_memory`.
        also: called for each operation too while the first of the two steps runs.
    """
    name, make = _optimizer(optimizer)
    step = make_step(batch=batch)
    moments = follow(step, make, keep_gradients, also)
    with suppress(RuntimeError):  # some models take no other batch
        # the update does not depend on the batch, but what is still in use then may
        twice = follow(make_step(batch=2 * step.batch), None, keep_gradients)
        moments = _with_growth(moments, twice, step.batch)
    found = Memory(
        batch=step.batch,
        precision=step.precision,
        optimizer=name,
        shards=1,
        training=step.training,
        loss_counted=step.loss_counted,
        assumed=tuple(step.assumed),
        moments=tuple(moments),
    )
    return step, found


def _optimizer(asked: str | Optimizer) -> tuple[str, Callable[..., Any]]:
    """Return an optimizer's name, and the function that makes it."""
    if callable(asked):
        made = getattr(asked, "func", asked)  # of a partial
        return getattr(made, "__name__", type(made).__name__), asked
    if asked not in OPTIMIZERS:
        known = ", ".join(OPTIMIZERS)
        raise ValueError(
            f"unknown optimizer {asked!r}. Pass {known}, or a function of the parameters."
        )
    return asked, OPTIMIZERS[asked]


def _with_growth(low: list[Moment], high: list[Moment], more: int) -> list[Moment]:
    """Return the lower of two steps, whose batches differ by `more`, with what a sample adds."""
    update = [one for one in low if one.phase == "optimizer"]
    before = len(low) - len(update)
    if len(high) != before + bool(update):
        return low  # with twice as many samples the model does other operations
    grown = []
    for one, two in zip(low, [*high[:before], *high[before:] * len(update)], strict=True):
        slope = (two.activations - one.activations) / more
        grown.append(one._replace(per_sample=slope))
    return grown


def sharded(memory: Memory, model: nn.Module, shards: int) -> Memory:
    """Return the memory on one of several devices that share the model, as FSDP does.

    Each keeps a share of every parameter, and puts together the block that computes and the one
    that comes next.
    """
    kept_in = WHOLE.get(memory.precision)  # what the weights are kept in, where not in their own

    def size_of(module: nn.Module) -> int:
        return sum(p.numel() * (kept_in or p.dtype).itemsize for p in module.parameters())

    whole = size_of(model)
    blocks = [size_of(block) for block in find_blocks(model)] or [whole]
    gathered = min(whole, whole - sum(blocks) + 2 * max(blocks))
    # the gradients of a block are whole until they are added up
    in_phase = {"forward": gathered, "backward": gathered + max(blocks)}
    shared = []
    for moment in memory.moments:
        parts = (moment.parameters, moment.gradients, moment.optimizer)
        parameters, gradients, optimizer = (part // shards for part in parts)
        one = moment._replace(parameters=parameters, gradients=gradients, optimizer=optimizer)
        shared.append(one._replace(gathered=in_phase.get(moment.phase, 0)))
    return replace(memory, shards=shards, moments=tuple(shared))
