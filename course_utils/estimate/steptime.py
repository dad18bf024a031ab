"""The model of time: what the host needs to launch, what the memory needs to move, what the
arithmetic needs.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from course_utils.estimate.chips import Chip
from course_utils.estimate.counting import Work

DATA = Path(__file__).parent / "fitted.json"


@dataclass(frozen=True)
class StepTime:
    """The estimated time of one step on one chip, in its three parts.

    Attributes:
        launch_s: seconds in which the host prepares the step and launches its kernels.
        memory_s: seconds in which the chip's memory moves the bytes.
        arithmetic_s: seconds in which the chip calculates.
    """

    launch_s: float
    memory_s: float
    arithmetic_s: float

    @property
    def device_s(self) -> float:
        """Seconds in which the chip is at work."""
        return self.memory_s + self.arithmetic_s

    @property
    def total_s(self) -> float:
        """Seconds of the step. Host and chip work at the same time, so it is little more than the
        longer of the two.
        """
        return math.hypot(self.launch_s, self.device_s)

    @property
    def limit(self) -> str:
        """What limits the step: "launches", "memory" or "arithmetic"."""
        return max(
            (self.launch_s, "launches"),
            (self.memory_s, "memory"),
            (self.arithmetic_s, "arithmetic"),
        )[1]

    def __repr__(self) -> str:
        parts = f"launches {self.launch_s:.3g} s, memory {self.memory_s:.3g} s, arithmetic {self.arithmetic_s:.3g} s"
        return f"estimated {self.total_s:.3g} s a step ({parts}): limited by {self.limit}"


@cache
def fitted() -> dict[str, Any]:
    """Return the fitted numbers, each with what it was fitted on, and the measured factors of
    error.
    """
    return dict(json.loads(DATA.read_text(encoding="utf-8")))


def step_time(work: Work, chip: Chip) -> StepTime:
    """Estimate the time of the counted work on `chip`.

        launches    an amount for the step, and one for each kernel (on a TPU, XLA makes one program
        of all of them) memory      bytes / bandwidth, more for convolutions, whose images are
        brought into another order first arithmetic  operations / peak

    Memory and arithmetic are added: a chip overlaps them inside one kernel, but never from kernel
    to kernel, and a sum fits published measurements better than a maximum. In training both take
    longer by a fitted number.

    Raises:
        ValueError: the chip has no peak for the precision that the work was counted in.
    """
    reordered = sum(op.bytes_moved for op in work.ops if op.kind == "convolution")
    launches = 1 if chip.vendor == "Google" else work.kernels
    amounts = (launches, work.bytes_moved - reordered, reordered, work.flops)
    return time_of(amounts, chip, work.precision, training=work.training)


def time_of(amounts: tuple[float, ...], chip: Chip, precision: str, *, training: bool) -> StepTime:
    """Return the time of a step of which the amounts are known; see `parts`."""
    numbers = {name: float(entry["value"]) for name, entry in fitted()["numbers"].items()}
    return StepTime(
        *parts(
            amounts, chip.bandwidth_gb_per_s * 1e9, chip.peak(precision), numbers, training=training
        )
    )


def parts(
    amounts: Any, bandwidth: Any, peak: Any, numbers: Mapping[str, Any], *, training: bool
) -> tuple[Any, Any, Any]:
    """Return the seconds of launches, memory and arithmetic: the model itself, for numbers or
    tensors of them.

    Args:
        amounts: launches, bytes of ordinary operations, bytes of convolutions, arithmetic
            operations.
        bandwidth: bytes a second.
        peak: arithmetic operations a second.
        numbers: the fitted ones.
        training: whether it is a training step.
    """
    launches, ordinary, reordered, flops = amounts
    moved = numbers["memory"] * ordinary + numbers["convolution_memory"] * reordered
    slower = numbers["training"] if training else 1
    return (
        numbers["step_s"] + numbers["launch_s"] * launches,
        slower * moved / bandwidth,
        slower * numbers["arithmetic"] * flops / peak,
    )
