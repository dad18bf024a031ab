"""`estimate`: from a model and a list of devices to hours and money."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn

from course_tools.estimate.chips import DEVICES, Chip, find_chip
from course_tools.estimate.counted import CountedMemory, counted_step
from course_tools.estimate.counting.count_work import Counter
from course_tools.estimate.counting.fake_step import Step, tensors, unwrapped
from course_tools.estimate.counting.work import Work
from course_tools.estimate.job import Job, Machine, job_of, machines
from course_tools.estimate.memory.estimate_memory import follow_two_batches, sharded
from course_tools.estimate.memory.memory_model import capacity_bytes, fits
from course_tools.estimate.memory.memory_result import Memory
from course_tools.estimate.money.prices import (
    Price,
    free_offers,
    own_price,
    prices_by_device,
)
from course_tools.estimate.result import Estimate
from course_tools.estimate.row import HERE, Question, Row
from course_tools.estimate.time.error_factor import ErrorFactor, error_factor
from course_tools.estimate.time.host import measure_host
from course_tools.estimate.time.parallel import scaling
from course_tools.estimate.time.step_time import Host, step_time


def estimate(
    model: nn.Module | str,
    inputs: Any,
    job: Job | None = None,
    *,
    devices: Sequence[str | Chip | Machine] | None = None,
    deadline_hours: float | None = None,
    prices: Mapping[str, float] | str | None = None,
    currency: str = "$",
    this_machine: Any = None,
    count: int = 1,
    link: str | None = None,
    host: str | Host | None = None,
    **fields: Any,
) -> Estimate:
    """Estimate how long a job would take on devices that are not here, and for what money.

    The model is counted without data (see `count_work`), and its operations, bytes and kernels
    become seconds by a model of time with a few fitted numbers (see `step_time`). Reading data is
    not included.

    >>> model, inputs = nn.Linear(64, 4096), torch.ones(1, 64)
    >>> found = estimate(model, inputs, batch=64, samples=10**6, devices=["T4", "8 x A100"])
    >>> [row.name for row in found.rows], found["T4"].fits
    (['T4', '8 x A100 80GB'], True)
    >>> machine = Machine("A100", 8, price_per_hour=1.3)
    >>> estimate(model, inputs, Job(batch=64), devices=[machine]).rows[0].cost > 0
    True

    Args:
        model: any module, on any device; it is not touched. Or the name of a network that was
            counted beforehand, see `counted`.
        inputs: one example input: a tensor, a tuple of positional arguments or a dict of keyword
            arguments, such as a tokenizer returns. The first dimension of the first tensor is the
            batch, unless `batch_dim` says otherwise.
        job: what is computed, how often, in what precision: a `Job`.
        devices: names of chips, such as "T4" or "2 x RTX 5090" (`chips.all_chips()` lists them);
            a `Chip` that you made from a data sheet; or a `Machine`, which has its own count, link,
            host and price. None takes those of `chips.DEVICES` that have the asked precision.
        deadline_hours: when it must be done, or None.
        prices: your price of an hour of one device, by its name; or a provider, such as "Lambda",
            whose dated list prices are taken. Without it each device has the list price of one.
        currency: of your prices; list prices are in US dollars, and only used with "$".
        this_machine: seconds of such a step that you measured here, or the `Timing` of `time_call`:
            it becomes a row beside the others, at no price unless `prices` has one for "this
            machine".
        count, link, host: of the devices that are given by name; see `Machine`.
        **fields: the fields of a `Job` in place of it, such as batch=64.

    Returns:
        The answer in a sentence, and one row for each device: hours, cost, and whether it fits. It
        shows itself and has `details`, `to_frame`, `to_json` and `cheapest`; `memory`
        says what fills the memory, and `free` has the job on what Colab and Kaggle give away.

    Raises:
        ValueError: a number is not positive, a price negative, a precision or a chip unknown, or a
            chip without the asked precision.
        RuntimeError: an operation of the model needs data, so that it cannot be counted.
    """
    if deadline_hours is not None:
        fields["deadline_hours"] = deadline_hours
    job = job_of(job, fields)
    asked = _machines(DEVICES if devices is None else devices, count, link, host, this_machine)
    left_out = []
    if devices is None:  # of what nobody named, only those that have the precision
        names = [find_chip(machine.chip) for machine in asked]
        left_out = [chip.name for chip in names if job.precision not in ("amp", *chip.peaks)]
        asked = [one for one in asked if find_chip(one.chip).name not in left_out]
    for machine in asked:
        if machine.count < job.shards:
            raise ValueError(
                f"shards={job.shards} is for as many devices together, but {machine.count} of "
                f"{find_chip(machine.chip).name} was asked for. Pass count={job.shards}, or "
                f"devices such as '{job.shards} x {find_chip(machine.chip).name}'."
            )
    chips = [find_chip(machine.chip) for machine in asked]
    known = prices_by_device(prices, HERE, currency, chips)
    precisions = [chip.at(job.precision) for chip in chips]
    work, memory = _step_of(model, inputs, job)
    unasked = [f"the {name}, which has no {job.precision}, takes no part" for name in left_out]
    work = replace(work, assumed=(*work.assumed, *unasked))
    hosts = [_host(machine.host) for machine in asked]
    counts = [machine.count for machine in asked]
    question = Question(
        batch=work.batch,
        precision=job.precision,
        training=job.training,
        optimizer=memory.optimizer,
        compiled=job.compiled,
        samples=job.samples,
        epochs=job.epochs,
        deadline_hours=job.deadline_hours,
        count=max(counts, default=count),
        link=link,
        host=next((host.source for host in hosts if host), "cloud"),
        shards=job.shards,
    )
    rows = []
    for machine, chip, name, launcher in zip(asked, chips, precisions, hosts, strict=True):
        one = replace(work, precision=name)
        price = known.get(chip.name)
        if machine.price_per_hour is not None:
            price = own_price(chip.name, machine.price_per_hour, currency)
        rows.append(_row(one, memory, machine, question, launcher, price))
    if this_machine is not None:
        rows.append(_measured(this_machine, question, known[HERE]))
    free = _free_rows(work, memory, question) if set(counts) <= {1} else ()
    return Estimate(tuple(rows), work, question, memory, free)


def _step_of(model: nn.Module | str, inputs: Any, job: Job) -> tuple[Work, Memory | CountedMemory]:
    if not isinstance(model, str):
        return _followed(model, inputs, job)
    images = tensors(inputs)
    if len(images) != 1:
        raise ValueError(
            f"{model} was counted with one tensor of images, but the inputs have {len(images)}."
        )
    return counted_step(model, images[0].shape, job)


def _followed(model: nn.Module, inputs: Any, job: Job) -> tuple[Work, Memory]:
    """Return the work and the memory of a step; the model runs but once for both."""
    make_step = partial(
        Step,
        model,
        inputs,
        precision=_counted_in(model, job.precision),
        training=job.training,
        loss=job.loss,
        batch_dim=job.batch_dim,
    )
    counter = Counter()
    step, memory = follow_two_batches(make_step, job.batch, job.optimizer, also=counter.note)
    work = counter.work(step, memory.optimizer)
    if job.channels_last is not None:
        work = replace(work, channels_last=job.channels_last)
    return work, memory if job.shards == 1 else sharded(memory, model, job.shards)


def _machines(
    devices: Sequence[str | Chip | Machine],
    count: int,
    link: str | None,
    host: str | Host | None,
    this_machine: Any,
) -> list[Machine]:
    if isinstance(devices, str):
        raise TypeError(
            f"devices is a list of names, but got the one name {devices!r}. Pass [{devices!r}]."
        )
    if not devices and this_machine is None:
        raise ValueError(
            "devices is empty. Name at least one chip; `chips.all_chips()` lists them."
        )
    Machine("T4", count, link, host)  # asked even where no device is
    return machines(devices, count, link, host)


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
    memory: Memory | CountedMemory,
    machine: Machine,
    question: Question,
    host: Host | None,
    price: Price | None,
) -> Row:
    chip, count, compiled = find_chip(machine.chip), machine.count, question.compiled
    parts = step_time(work, chip, host=host, compiled=compiled)
    together = count > 1 and work.training
    step_s = parts.total_s
    if together:
        several = scaling(
            work,
            chip,
            link=machine.link,
            counts=(count,),
            host=host,
            compiled=compiled,
            sharded=question.shards > 1,
        )
        step_s = several.steps_s[0]
        if memory.shards == 1:
            memory = memory.under_ddp()
    capacity, needed = capacity_bytes(chip), memory.needed_bytes
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
        needed_bytes=needed,
        fits=None if needed is None else fits(needed, capacity),
        capacity_bytes=capacity,
        watts=None if chip.watts is None else chip.watts * count,
        flops=work.flops * question.samples * question.epochs / work.batch,
    )


def _free_rows(work: Work, memory: Memory | CountedMemory, question: Question) -> tuple[Row, ...]:
    """Return the job on each free offer whose device has the precision."""
    rows = []
    for offer in free_offers():
        price = Price(0.0, f"free, {offer['what']}, {offer['date']}, {offer['source']}")
        for name in offer["devices"]:
            chip = find_chip(name)
            if question.precision == "amp" or question.precision in chip.peaks:
                one = replace(work, precision=chip.at(question.precision))
                machine = Machine(chip, offer["count"])
                row = _row(one, memory, machine, question, None, price)
                rows.append(replace(row, where=offer["name"]))
    return tuple(rows)


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
