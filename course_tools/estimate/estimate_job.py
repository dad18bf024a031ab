"""`estimate`: from a model and a list of devices to hours and money."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn

from course_tools.estimate.chips import DEVICES, PRECISIONS, Chip, find_chip, is_amount
from course_tools.estimate.counting import Counter
from course_tools.estimate.error_factor import ErrorFactor, error_factor
from course_tools.estimate.fake_step import Loss, Step, check_positive, unwrapped
from course_tools.estimate.host import measure_host
from course_tools.estimate.memory import follow_two_batches
from course_tools.estimate.memory_model import capacity_bytes
from course_tools.estimate.memory_result import Memory
from course_tools.estimate.memory_step import Optimizer
from course_tools.estimate.parallel import scaling
from course_tools.estimate.prices import Price, prices_by_device
from course_tools.estimate.result import Estimate
from course_tools.estimate.row import HERE, Question, Row
from course_tools.estimate.step_time import Host, step_time
from course_tools.estimate.work import Work


def estimate(
    model: nn.Module,
    inputs: Any,
    *,
    batch: int | None = None,
    batch_dim: int | None = None,
    precision: str = "amp",
    training: bool = True,
    loss: Loss | None = None,
    optimizer: str | Optimizer = "adam",
    compiled: bool = False,
    samples: int = 50_000,
    epochs: int = 1,
    deadline_hours: float | None = None,
    devices: Sequence[str | Chip] | None = None,
    prices: Mapping[str, float] | None = None,
    currency: str = "$",
    count: int = 1,
    link: str | None = None,
    host: str | Host | None = None,
    this_machine: Any = None,
) -> Estimate:
    """Estimate how long a job would take on devices that are not here, and for what money.

    The model is counted without data (see `count_work`), and its operations, bytes and kernels
    become seconds by a model of time with a few fitted numbers (see `step_time`). Reading data is
    not included.

    Args:
        model: any module, on any device; it is not touched.
        inputs: one example input: a tensor, a tuple of positional arguments or a dict of keyword
            arguments, such as a tokenizer returns. The first dimension of the first tensor is the
            batch, unless `batch_dim` says otherwise.
        batch: samples in a step on each device, or None to take the example's.
        batch_dim: which dimension is the batch, or None for the first.
        precision: "amp" (each chip's own 16 bits: bf16 where it has them, else fp16), "bf16",
            "fp16", "tf32" or "fp32".
        training: forward, backward and optimizer, or the forward pass alone.
        loss: a function of what the model returns, or None for the loss that the model returns
            itself; see `count_work`. Without either, the result says that it is not counted.
        optimizer: as for `estimate_memory`.
        compiled: whether the model goes through torch.compile.
        samples: in one epoch.
        epochs: how many times all samples are used.
        deadline_hours: when it must be done, or None.
        devices: names of chips, such as "T4" or "RTX 5090", which `chips.all_chips()` lists; or a
            `Chip` that you made from a data sheet. None takes those of `chips.DEVICES` that have
            the asked precision.
        prices: your price of an hour of one device, by its name; dated examples stand in for some.
        currency: of your prices; the examples are in US dollars, and only used with "$".
        count: how many of each device work together, each with its own batch.
        link: what connects them, such as "Ethernet 10G", or None to take each chip's own.
        host: the computer that launches the kernels: "this machine" measures this one for a second;
            None stands for those of clouds.
        this_machine: seconds of such a step that you measured here, or the `Timing` of `time_call`:
            it becomes a row beside the others, at no price unless `prices` has one for "this
            machine".

    Returns:
        The answer in a sentence, and one row for each device: hours, cost, and whether it fits. It
        shows itself and has `details`, `to_frame`, `to_json` and `cheapest`; `memory`
        says what fills the memory.

    Raises:
        ValueError: a number is not positive, a price negative, a precision or a chip unknown, or a
            chip without the asked precision.
        RuntimeError: an operation of the model needs data, so that it cannot be counted.
    """
    _check(precision, deadline_hours, samples=samples, epochs=epochs, count=count)
    chips = _chips(DEVICES if devices is None else devices, this_machine)
    left_out = []
    if devices is None:  # of what nobody named, only those that have the precision
        left_out = [chip.name for chip in chips if precision not in ("amp", *chip.peaks)]
        chips = [chip for chip in chips if chip.name not in left_out]
    known = prices_by_device(prices, HERE, currency, chips)
    precisions = [chip.at(precision) for chip in chips]
    like = _counted_in(model, precision)
    launcher = _host(host)
    make_step = partial(
        Step, model, inputs, precision=like, training=training, loss=loss, batch_dim=batch_dim
    )
    counter = Counter()  # counts while memory is followed: the model runs but once for both
    step, memory = follow_two_batches(make_step, batch, optimizer, also=counter.note)
    work = counter.work(step, memory.optimizer)
    unasked = [f"the {name}, which has no {precision}, is not wanted" for name in left_out]
    work = replace(work, assumed=(*work.assumed, *unasked))
    question = Question(
        batch=work.batch,
        precision=precision,
        training=training,
        optimizer=memory.optimizer,
        compiled=compiled,
        samples=samples,
        epochs=epochs,
        deadline_hours=deadline_hours,
        count=count,
        link=link,
        host="cloud" if launcher is None else launcher.source,
    )
    rows = []
    for chip, name in zip(chips, precisions, strict=True):
        one = replace(work, precision=name)
        rows.append(_row(one, memory, chip, question, launcher, known.get(chip.name)))
    if this_machine is not None:
        rows.append(_measured(this_machine, question, known[HERE]))
    return Estimate(tuple(rows), replace(work, precision=like), question, memory)


def _check(precision: str, deadline_hours: float | None, **counts: int) -> None:
    """Raise ValueError for what makes no sense on any device."""
    if precision not in ("amp", *PRECISIONS):
        raise ValueError(
            f"unknown precision {precision!r}. Pass one of amp, {', '.join(PRECISIONS)}."
        )
    for name, number in counts.items():
        check_positive(name, number)
    if deadline_hours is not None and not is_amount(deadline_hours):
        raise ValueError(
            f"deadline_hours must be a positive number, or None, but got {deadline_hours!r}."
        )


def _chips(devices: Sequence[str | Chip], this_machine: Any) -> list[Chip]:
    if isinstance(devices, str):
        raise TypeError(
            f"devices is a list of names, but got the one name {devices!r}. Pass [{devices!r}]."
        )
    if not devices and this_machine is None:
        raise ValueError(
            "devices is empty. Name at least one chip; `chips.all_chips()` lists them."
        )
    chips = []
    for name in devices:
        chip = find_chip(name)
        if chip not in chips:
            chips.append(chip)
    return chips


def _counted_in(model: nn.Module, precision: str) -> str:
    """Return the precision to count in: both kinds of 16 bits move the same bytes."""
    own = {parameter.dtype for parameter in unwrapped(model).parameters()}
    half = "bf16" if torch.bfloat16 in own else "fp16"
    return {"amp": half, "bf16": half, "fp16": half}.get(precision, precision)


def _host(asked: str | Host | None) -> Host | None:
    if asked is None or isinstance(asked, Host):
        return asked
    if asked != HERE:
        raise ValueError(f"host is {HERE!r}, a Host, or None for those of clouds; got {asked!r}.")
    return measure_host()


def _row(
    work: Work,
    memory: Memory,
    chip: Chip,
    question: Question,
    host: Host | None,
    price: Price | None,
) -> Row:
    count, compiled = question.count, question.compiled
    parts = step_time(work, chip, host=host, compiled=compiled)
    together = count > 1 and work.training
    step_s = parts.total_s
    if together:
        several = scaling(
            work, chip, link=question.link, counts=(count,), host=host, compiled=compiled
        )
        step_s = several.steps_s[0]
    return Row(
        device=chip.name,
        count=count,
        precision=work.precision,
        step_s=step_s,
        batch=work.batch * count,
        samples=question.samples * question.epochs,
        price=price,
        evidence=error_factor(work, chip, parts, compiled=compiled, own_host=host is not None),
        parts=parts,
        needed_bytes=memory.needed_bytes,
        fits=memory.needed_bytes <= capacity_bytes(chip),
        capacity_bytes=capacity_bytes(chip),
        watts=None if chip.watts is None else chip.watts * count,
    )


def _measured(timing: Any, question: Question, price: Price) -> Row:
    step_s = getattr(timing, "median_s", timing)
    number = isinstance(step_s, (int, float)) and not isinstance(step_s, bool)
    if not number or not 0 < step_s < float("inf"):
        raise ValueError(
            f"this_machine is the seconds of a step that you measured, or a Timing, "
            f"but got {timing!r}."
        )
    high = getattr(timing, "interval_s", (step_s, step_s))[1]
    return Row(
        device=HERE,
        count=1,
        precision="as measured",
        step_s=float(step_s),
        batch=question.batch,
        samples=question.samples * question.epochs,
        price=price,
        evidence=ErrorFactor(high / step_s, checked=True, reasons=()),
        doubts=tuple(getattr(timing, "warnings", ())),
    )
