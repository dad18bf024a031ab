"""`estimate`: a network's job on machines that are not here, counted without its data."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import nn

from course_tools.estimate.answer import Answer
from course_tools.estimate.answers import Answers, answer_all
from course_tools.estimate.chips import DEVICES, Chip
from course_tools.estimate.counting.count_work import Counter
from course_tools.estimate.counting.fake_step import FakeStep, tensors, unwrapped
from course_tools.estimate.counting.work import Work
from course_tools.estimate.demand import AsAsked, StepOnMachine
from course_tools.estimate.job import Job
from course_tools.estimate.known_networks import CountedMemory, counted_step
from course_tools.estimate.machine import Machine, machines
from course_tools.estimate.memory.estimate_memory import follow_two_batches, sharded
from course_tools.estimate.memory.memory_model import capacity_bytes, fits, memory_note
from course_tools.estimate.memory.memory_result import Memory
from course_tools.estimate.time.error_factor import error_factor
from course_tools.estimate.time.parallel import scaling
from course_tools.estimate.time.step_time import cloud_host, fitted, step_time
from course_tools.estimate.words import sentence


def estimate(
    model: nn.Module | str,
    inputs: Any,
    *,
    devices: Sequence[str | Chip | Machine] | None = None,
    prices: Mapping[str, float] | str | None = None,
    currency: str = "$",
    this_machine: Any = None,
    count: int = 1,
    link: str | None = None,
    **fields: Any,
) -> Answers["NetworkDemand"]:
    """Estimate how long a job would take on devices that are not here, and for what money.

    The model is counted without data (see `count_work`), and its operations, bytes and kernels
    become seconds by a model of time with a few fitted numbers (see `step_time`). Reading data is
    not included.

    >>> model, inputs = nn.Linear(64, 4096), torch.ones(1, 64)
    >>> found = estimate(model, inputs, batch=64, samples=10**6, devices=["T4", "8 x A100"])
    >>> [row.name for row in found.rows], found["T4"].fits
    (['T4', '8 x A100 80GB'], True)

    Args:
        model: any module, on any device; it is not touched. Or the name of a network that was
            counted beforehand, see `known_networks`.
        inputs: one example input: a tensor, a tuple of positional arguments or a dict of keyword
            arguments, such as a tokenizer returns. The first dimension of the first tensor is the
            batch, unless `batch_dim` says otherwise.
        devices: names of chips, such as "T4" or "2 x RTX 5090" (`chips.all_chips()` lists them);
            a `Chip` that you made from a data sheet; or a `Machine`, which has its own count
            and link. None takes those of `chips.DEVICES` that have the asked precision.
        prices: your price of an hour of one device, by its name; or a provider, such as "Lambda",
            whose dated list prices are taken. Without it each device has the list price of one.
        currency: of your prices; list prices are in US dollars, and only used with "$".
        this_machine: seconds of such a step that you measured here, or the `Timing` of `time_call`:
            it becomes a row beside the others, at no price unless `prices` has one for "this
            machine".
        count, link: of the devices that are given by name; see `Machine`.
        **fields: what is computed, how often, in what precision: the fields of a `job.Job`, such as
            batch=64 or deadline_hours=48.

    Returns:
        The answer in a sentence, and one row for each device: hours, cost, and whether it fits. It
        shows itself and has `details`, `to_json` and `cheapest`; `demand.memory`
        says what fills the memory, and `free` has the job on what Colab and Kaggle give away.

    Raises:
        ValueError: a number is not positive, a price negative, a precision or a chip unknown, or a
            chip without the asked precision.
        RuntimeError: an operation of the model needs data, so that it cannot be counted.
    """
    job = Job(**fields)
    asked = machines(DEVICES if devices is None else devices, count, link)
    left_out = []
    if devices is None:  # of what nobody named, only those that have the precision
        able = [one for one in asked if job.precision in ("amp", "default", *one.chip.peaks)]
        left_out = [one.chip.name for one in asked if one not in able]
        asked = able
    for machine in asked:
        machine.chip.at(job.precision)
        if machine.count < job.shards:
            raise ValueError(
                f"shards={job.shards} is for as many devices together, but {machine.count} of "
                f"{machine.chip.name} was asked for. Pass count={job.shards}, or "
                f"devices such as '{job.shards} x {machine.chip.name}'."
            )
    return answer_all(
        partial(_demand, model, inputs, job, left_out),
        asked,
        samples=job.samples,
        epochs=job.epochs,
        deadline_hours=job.deadline_hours,
        prices=prices,
        currency=currency,
        this_machine=this_machine,
    )


def _demand(
    model: nn.Module | str, inputs: Any, job: Job, left_out: Sequence[str]
) -> "NetworkDemand":
    """Return what a step of the model asks; the model runs but once, for time and for memory."""
    work: Work
    memory: Memory | CountedMemory
    images = tensors(inputs)
    if isinstance(model, str):
        if len(images) != 1:
            raise ValueError(
                f"{model} was counted with one tensor of images, but the inputs have {len(images)}."
            )
        work, memory = counted_step(model, images[0].shape, job)
    else:
        work, memory = _followed(model, inputs, job)
    unasked = [f"the {name}, which has no {job.precision}, takes no part" for name in left_out]
    name = model if isinstance(model, str) else type(unwrapped(model)).__name__
    shapes = " and ".join(str(tuple(each.shape)) for each in images[:2])
    about = f"{name} with inputs of shape {shapes}"
    return NetworkDemand(replace(work, assumed=(*work.assumed, *unasked)), memory, job, about)


def _followed(model: nn.Module, inputs: Any, job: Job) -> tuple[Work, Memory]:
    make_step = partial(
        FakeStep,
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


def _counted_in(model: nn.Module, precision: str) -> str:
    """Return the precision to count in: both kinds of 16 bits move the same bytes."""
    own = {parameter.dtype for parameter in unwrapped(model).parameters()}
    half = "bf16" if torch.bfloat16 in own else "fp16"
    counted = {"amp": half, "bf16": half, "fp16": half, "default": "fp32"}
    return counted.get(precision, precision)


@dataclass(frozen=True)
class NetworkDemand(AsAsked):
    """What a step of a network asks of any machine.

    Attributes:
        work: of one device.
        memory: of one device; of a counted network, how much.
        job: what was asked.
        about: the network and its inputs, in words.
    """

    work: Work
    memory: Memory | CountedMemory
    job: Job
    about: str
    together = True

    @property
    def batch(self) -> int:
        """Samples in a step on each device."""
        return self.work.batch

    @property
    def flops(self) -> float:
        """Arithmetic operations of a step on one device."""
        return self.work.flops

    @property
    def training(self) -> bool:
        """Whether it is a training; else an inference."""
        return self.work.training

    def on(self, machine: Machine) -> StepOnMachine:
        """Return the step on a machine; see `demand.Demand`."""
        chip, compiled, memory = machine.chip, self.job.compiled, self.memory
        work = replace(self.work, precision=chip.at(self.job.precision))
        parts = step_time(work, chip, compiled=compiled)
        seconds = parts.total_s
        if machine.count > 1 and work.training:
            sharded = self.job.shards > 1
            together = scaling(
                work,
                chip,
                link=machine.link,
                counts=(machine.count,),
                compiled=compiled,
                sharded=sharded,
            )
            seconds = together.steps_s[0]
            memory = memory if sharded else memory.under_ddp()
        needed = memory.needed_bytes
        return StepOnMachine(
            precision=work.precision,
            seconds=seconds,
            evidence=error_factor(work, chip, parts, compiled=compiled),
            fits=None if needed is None else fits(needed, capacity_bytes(chip)),
            needed_bytes=needed,
            parts=parts,
        )

    def smaller(self) -> Iterator[tuple[str, "NetworkDemand"]]:
        """Yield smaller batches; see `demand.Demand`."""
        if isinstance(self.memory, Memory) and not self.memory.grows:
            return
        batch = 1 << (self.batch.bit_length() - 1)
        while batch >= 1:
            if batch < self.batch:
                yield f"a batch of {batch:,}", replace(self, memory=self.memory.at(batch))
            batch //= 2

    def notes(self, rows: Sequence[Answer]) -> list[str]:
        """Return what was taken for granted; see `demand.Demand`."""
        work, lines = self.work, [self._asked(rows[0])]
        if self.batch == 1 and self.job.batch is None:
            lines.append("A step has one sample, as the example has: batch= makes it faster.")
        if work.training and not work.loss_counted:
            lines.append("The loss is not counted: none was given, and the model returns none.")
        if self.job.shards > 1 and work.training:
            lines.append(
                f"{self.job.shards} devices share parameters, gradients and the optimizer's state "
                f"(FSDP), and exchange 1.5 times as much as DDP."
            )
        lines += [f"Assumed: {each}." for each in work.assumed]
        lines.append(self._taken_for())
        used = {reason for row in rows if row.machine for reason in row.evidence.reasons}
        beside, hosts = (fitted()["factors"][name] for name in ("loops", "hosts"))
        if hosts["about"] in used:
            lines.append(sentence(hosts["about"]))
        if beside["about"] in used:
            lines.append(
                "Logging, loss.item(), clipping, augmentation and an average of the weights are "
                f"not counted, but the upper end allows a factor of {beside['factor']} for them."
            )
        return [*lines, "Reading data is not included."]

    def _asked(self, row: Answer) -> str:
        """Return the job in a sentence, with the names of what may be asked otherwise."""
        job = f"samples={row.samples:.0f}, epochs={row.epochs}, batch={self.batch}"
        job += f", precision={self.job.precision!r}"
        if self.training:
            job += f", optimizer={self.memory.optimizer!r}"
        kind = "training" if self.training else "inference"
        return f"The job: {kind} of {self.about}, {job}."

    def _taken_for(self) -> str:
        """Return in a sentence what the step was taken for where PyTorch leaves a choice."""
        work = self.work
        how = "with torch.compile" if self.job.compiled else "without torch.compile"
        if work.convolution.flops or work.depthwise.flops or work.convolution3d.flops:
            how += f", images with channels {'last' if work.channels_last else 'first'}"
            if self.job.precision == "fp32":
                how += ", convolutions in fp32 (PyTorch takes tf32 for them where a card has it; "
                how += 'precision="default" is that)'
        return f"Counted as a step {how}."

    def details(self, rows: Sequence[Answer]) -> list[str]:
        """Return what was counted, and what launches it; see `demand.Demand`."""
        half = self.work.precision in ("fp16", "bf16")  # counted alike, and each row says its own
        work = replace(self.work, precision="16 bits") if half else self.work
        several = [row.machine for row in rows if row.machine and row.count > 1]
        links = [f"Link of {machine.name}: {machine.link!r}." for machine in several]
        lines = [f"{work!r}.", *_unaligned(work), *_hosts(rows), *links]
        if self.memory.needed_bytes is not None:
            lines.append(memory_note(work.training, self.memory.optimizer))
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON; see `Answers.to_dict`."""
        job = self.job
        question = {
            "batch": self.batch,
            "precision": job.precision,
            "training": self.training,
            "optimizer": self.memory.optimizer,
            "compiled": job.compiled,
            "shards": job.shards,
        }
        counted, memory = self.work.to_dict(), self.memory.to_dict()
        return {"question": question, "counted": counted, "memory": memory}


def _hosts(rows: Sequence[Answer]) -> list[str]:
    """Return what launches the kernels, with the devices that stand beside it."""
    names: dict[str, list[str]] = {}
    for row in rows:
        if row.machine is not None:
            typical = f"a typical one of clouds, {cloud_host(row.machine.chip).source}"
            names.setdefault(typical, []).append(row.name)
    return [f"Host of {', '.join(beside)}: {source}." for source, beside in names.items()]


def _unaligned(work: Work) -> list[str]:
    """Return a sentence on matrix products that tensor cores do not like, if they matter."""
    share = work.unaligned / max(1.0, work.flops)
    if share < 0.1:
        return []
    longer = fitted()["numbers"]["unaligned"]["value"]
    return [
        f"{share:.0%} of the operations are matrix products with a size that is odd, such as "
        f"50,257 words. Tensor cores take {longer:.2g} times as long for them, so round such sizes "
        f"up, best to a multiple of 64."
    ]
