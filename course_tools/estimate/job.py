"""What an estimate is asked: the job, and the machines that could do it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from course_tools.estimate.checks import check_positive, is_amount
from course_tools.estimate.chips import PRECISIONS, Chip, find_chip, find_link
from course_tools.estimate.time.step_time import Host

SEVERAL = re.compile(r"\s*(\d+)\s*x\s+(\S.*)")


@dataclass(frozen=True)
class Job:
    """What is to be computed, wherever that will be.

    Attributes:
        batch: samples in a step on each device, or None to take the example's.
        batch_dim: which dimension of the inputs is the batch, or None for the first.
        precision: "amp" (each chip's own 16 bits: bf16 where it has them, else fp16), "bf16",
            "fp16", "tf32" or "fp32".
        training: forward, backward and optimizer, or the forward pass alone.
        loss: a function of what the model returns, or None for the loss that the model returns
            itself; see `count_work`. Without either, the result says that it is not counted.
        optimizer: as for `estimate_memory`.
        compiled: whether the model goes through torch.compile.
        channels_last: whether images and weights lie in memory with their channels last, or None
            to look at the model and its inputs.
        shards: devices that share parameters, gradients and optimizer state, as with FSDP.
        samples: in one epoch.
        epochs: how many times all samples are used.
        deadline_hours: when it must be done, or None.
    """

    batch: int | None = None
    batch_dim: int | None = None
    precision: str = "amp"
    training: bool = True
    loss: Any = None
    optimizer: Any = "adam"
    compiled: bool = False
    channels_last: bool | None = None
    shards: int = 1
    samples: int = 50_000
    epochs: int = 1
    deadline_hours: float | None = None

    def __post_init__(self) -> None:
        if self.precision not in ("amp", *PRECISIONS):
            raise ValueError(
                f"unknown precision {self.precision!r}. Pass one of amp, {', '.join(PRECISIONS)}."
            )
        for name in ("samples", "epochs", "shards", "batch"):
            if name != "batch" or self.batch is not None:
                object.__setattr__(self, name, check_positive(name, getattr(self, name)))
        if self.deadline_hours is not None and not is_amount(self.deadline_hours):
            raise ValueError(
                f"deadline_hours must be a positive number, or None, but got "
                f"{self.deadline_hours!r}."
            )


@dataclass(frozen=True)
class Machine:
    """One or several of a chip, with what connects them, launches for them, and costs.

    Attributes:
        chip: the chip, or its name.
        count: how many work together, each with its own batch.
        link: what connects them, such as "Ethernet 10G", or None to take the chip's own.
        host: the computer that launches the kernels: "this machine" measures this one for a second;
            None stands for those of clouds.
        price_per_hour: of one of the chips, or None for a dated example where there is one.
    """

    chip: str | Chip
    count: int = 1
    link: str | None = None
    host: str | Host | None = None
    price_per_hour: float | None = None

    def __post_init__(self) -> None:
        find_chip(self.chip)
        object.__setattr__(self, "count", check_positive("count", self.count))
        if self.link is not None:
            find_link(self.link)


def machines(
    devices: Sequence[str | Chip | Machine], count: int, link: str | None, host: str | Host | None
) -> list[Machine]:
    """Return each device once, as a machine; "8 x A100" is eight of them.

    Args:
        devices: names, chips or machines.
        count, link, host: of the devices that are no `Machine`, and do not say it themselves.
    """
    found: list[Machine] = []
    for device in devices:
        if not isinstance(device, Machine):
            several = SEVERAL.fullmatch(device) if isinstance(device, str) else None
            how_many, chip = (int(several[1]), several[2]) if several else (count, device)
            device = Machine(chip, how_many, link, host)
        chip = find_chip(device.chip)
        alike = [known for known in found if find_chip(known.chip).name == chip.name]
        if any(find_chip(known.chip) != chip for known in alike):
            raise ValueError(f"two unlike chips have the name {chip.name!r}. Give them two names.")
        if all(known.count != device.count for known in alike):
            found.append(device)
    return found


def job_of(job: Job | None, asked: dict[str, Any]) -> Job:
    """Return the job, which is given whole or by the names of its fields.

    Raises:
        TypeError: both are given, or a name is no field.
    """
    if job is not None and not isinstance(job, Job):
        raise TypeError(f"the third argument is a Job, but got {job!r}.")
    names = [field.name for field in fields(Job)]
    unknown = [name for name in asked if name not in names]
    if unknown:
        raise TypeError(
            f"estimate has no argument {', '.join(map(repr, unknown))}. A job has "
            f"{', '.join(names)}; a Machine among devices has count, link, host, price_per_hour."
        )
    if job is not None and asked:
        raise TypeError(f"pass {', '.join(asked)} to the Job, which was given too.")
    return Job(**asked) if job is None else job
