"""Several devices under data parallelism, whose gradients a ring adds up."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from course_tools.estimate.chips import Chip, Link, find_chip, find_link
from course_tools.estimate.counting.work import Work
from course_tools.estimate.time.step_time import numbers, step_time

THROUGH_HOST = "PCIe through the host"
COUNTS = (1, 2, 4, 8, 16, 32, 64)  # published measurements were compared up to here


@dataclass(frozen=True)
class Scaling:
    """Estimated speed of 1 to many devices that train one model together.

    Attributes:
        counts: how many devices.
        steps_s: seconds of a step with each count.
        exchanges_s: seconds that the gradients spend on the link in each.
        limit: what limits the step of one device: "launches", "memory" or "arithmetic".
    """

    counts: tuple[int, ...]
    steps_s: tuple[float, ...]
    exchanges_s: tuple[float, ...]
    limit: str

    @property
    def speedups(self) -> tuple[float, ...]:
        """How many times as many samples a second as with the first count, for each."""
        first = self.steps_s[0] / self.counts[0]
        return tuple(n * first / s for n, s in zip(self.counts, self.steps_s, strict=True))


def scaling(
    work: Work,
    device: str | Chip,
    *,
    link: str | Link | None = None,
    counts: Sequence[int] = COUNTS,
    compiled: bool = False,
    sharded: bool = False,
) -> Scaling:
    """Estimate how much faster many devices train together than one.

    Args:
        work: the training step of one device, from `count_work`.
        device: a chip, or its name.
        link: what carries the gradients, or its name, or None to take the chip's own. The slowest
            link of the ring decides.
        counts: how many devices; the first is what the others are compared with.
        compiled: as for `step_time`.
        sharded: whether the devices share the model, as FSDP does: they put its parameters together
            in both passes, and each keeps its share of the summed gradients, which together is 1.5
            times what DDP exchanges.

    Raises:
        ValueError: the work is not a training, or the chip has no link of its own.
    """
    if not work.training:
        raise ValueError(
            "devices exchange gradients in training only, but the work was counted with "
            "training=False."
        )
    chip = find_chip(device)
    if not (link or chip.link):
        raise ValueError(
            f"the {chip.name} has no link to a second one. Pass link=, such as link='Ethernet 10G'."
        )
    wire = find_link(link or chip.link)
    one = step_time(work, chip, compiled=compiled)
    one_s = one.total_s
    # the backward pass, during which gradients already travel, unless the host has to copy them
    hidden_s = 0.0 if wire.name == THROUGH_HOST else one_s * 2 / 3
    steps, exchanges = [], []
    for count in counts:
        exchange = exchange_s(work.parameters, wire, count) * (1.5 if sharded else 1.0)
        alone_s = one_s * numbers()["doubling"] ** math.log2(count)
        steps.append(alone_s + max(0.0, exchange - hidden_s))
        exchanges.append(exchange)
    return Scaling(tuple(counts), tuple(steps), tuple(exchanges), one.limit)


def exchange_s(parameters: int, link: Link, count: int) -> float:
    """Return the seconds in which a ring of `count` devices adds up gradients of 4 bytes a
    parameter.

    Each device sends 2 (n - 1) / n times all gradients: P. Patarasuk and X. Yuan, Bandwidth optimal
    all-reduce algorithms for clusters of workstations (2009). A link carries a share of its line
    rate (the number `link`), and each of the 2 (n - 1) rounds has an assumed latency (`round_s`).
    """
    rounds = 2 * (count - 1)
    rate = numbers()["link"] * link.gb_per_s * 1e9
    return rounds / count * 4 * parameters / rate + rounds * numbers()["round_s"]
