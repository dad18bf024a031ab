"""`estimate`: from a model and a list of devices to hours, energy and money."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from course_utils.estimate.chips import Chip, find_chip
from course_utils.estimate.counting import Work, count_work
from course_utils.estimate.evidence import Evidence, evidence
from course_utils.estimate.memory import needed_bytes
from course_utils.estimate.memory_model import capacity_bytes
from course_utils.estimate.no_data import positive, unwrapped
from course_utils.estimate.parallel import scaling
from course_utils.estimate.prices import prices_by_device
from course_utils.estimate.result import Estimate, Row
from course_utils.estimate.steptime import step_time

HERE = "this machine"
DEVICES = ("T4", "L4", "A100", "H100", "RTX 5090", "TPU v5e")


def estimate(
    model: nn.Module,
    inputs: Any,
    *,
    batch: int | None = None,
    precision: str = "amp",
    training: bool = True,
    samples: int = 50_000,
    epochs: int = 1,
    devices: Sequence[str | Chip] = DEVICES,
    prices: Mapping[str, float] | None = None,
    count: int = 1,
    link: str | None = None,
    this_machine: Any = None,
) -> Estimate:
    """Estimate how long a job would take on devices that are not here, with what energy and for
    what money.

    The model is counted without data (see `count_work`), and its operations, bytes and kernels
    become seconds by a model of time with six fitted numbers (see `step_time`). Reading data and
    what the loss needs are not included.

    Args:
        model: any module, on any device; it is not touched.
        inputs: one example input: a tensor, a tuple of positional arguments or a dict of keyword
            arguments. The first dimension of the first tensor is the batch.
        batch: samples in a step on each device, or None to take the example's.
        precision: "amp" (each chip's own 16 bits: bf16 where it has them, else fp16), "bf16",
            "fp16", "tf32" or "fp32".
        training: forward, backward and Adam, or the forward pass alone.
        samples: in one epoch.
        epochs: how many times all samples are used.
        devices: names of chips, such as "T4" or "RTX 5090", which `chips.all_chips()` lists; or a
            `Chip` that you made from a data sheet.
        prices: your price of an hour of one device, by its name; dated examples stand in for some.
        count: how many of each device work together, each with its own batch.
        link: what connects them, such as "Ethernet 10G", or None to take each chip's own.
        this_machine: seconds of such a step that you measured here, or the `Timing` of `time_call`:
            it becomes a row beside the others, at no price unless `prices` has one for "this
            machine".

    Returns:
        One row for each device: hours, cost, and whether it fits. The result shows itself and has
            `to_frame`, `plot`,
        `save`, `fastest` and `cheapest`.

    Raises:
        ValueError: a number is not positive, a price negative, a chip unknown or without the asked
            precision.
        RuntimeError: an operation of the model needs data, so that it cannot be counted.
    """
    for name, number in {"samples": samples, "epochs": epochs, "count": count}.items():
        positive(name, number)
    if isinstance(devices, str):
        raise TypeError(
            f"devices is a list of names, but got the one name {devices!r}. Pass [{devices!r}]."
        )
    if not devices and this_machine is None:
        raise ValueError(
            "devices is empty. Name at least one chip; `chips.all_chips()` lists them."
        )
    chips = [find_chip(name) for name in devices]
    known = prices_by_device(prices, HERE)
    precisions = [chip.at(precision) for chip in chips] or [
        "bf16" if precision == "amp" else precision
    ]
    # Both kinds of 16 bits move the same bytes, unless the weights have one of them; tf32 moves
    # those of fp32.
    half = "bf16" if torch.bfloat16 in {p.dtype for p in unwrapped(model).parameters()} else "fp16"
    like = {"amp": half, "bf16": half, "fp16": half, "tf32": "fp32"}.get(precision, precision)
    work = count_work(model, inputs, batch=batch, precision=like, training=training)
    needed = needed_bytes(model, inputs, work.batch, like, training)
    works = [replace(work, precision=name) for name in precisions]
    rows = [
        _row(one, needed, chip, count, link, samples=samples * epochs, price=known.get(chip.name))
        for one, chip in zip(works, chips, strict=False)  # without a chip, there is one work
    ]
    if this_machine is not None:
        rows.append(
            _measured(this_machine, samples=samples * epochs, batch=work.batch, price=known[HERE])
        )
    return Estimate(tuple(rows), works[0])


def _row(work: Work, needed: float, chip: Chip, count: int, link: str | None, **job: Any) -> Row:
    parts = step_time(work, chip)
    together = count > 1 and work.training
    return Row(
        device=chip.name,
        count=count,
        precision=work.precision,
        step_s=scaling(work, chip, link=link, counts=(count,)).steps_s[0]
        if together
        else parts.total_s,
        batch=work.batch * count,
        evidence=evidence(work, chip, parts),
        parts=parts,
        needed_bytes=needed,
        fits=needed <= capacity_bytes(chip),
        watts=None if chip.watts is None else chip.watts * count,
        **job,
    )


def _measured(timing: Any, **job: Any) -> Row:
    seconds = getattr(timing, "median_s", timing)
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, (int, float))
        or not 0 < seconds < float("inf")
    ):
        raise ValueError(
            f"this_machine is the seconds of a step that you measured, or a Timing, "
            f"but got {timing!r}."
        )
    high = getattr(timing, "interval_s", (seconds, seconds))[1]
    known = Evidence(high / seconds, checked=True, reasons=())
    return Row(
        device=HERE, count=1, precision="as measured", step_s=float(seconds), evidence=known, **job
    )
