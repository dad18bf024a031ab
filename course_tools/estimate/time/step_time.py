"""The model of time: from the counted sums of a step to seconds on a chip, without torch.

    launches    s * step_s + launch_s * kernels                         (on a TPU, one kernel)
    memory      (memory * bytes + convolution_memory * bytes of convolutions) / bandwidth
    arithmetic  (arithmetic * FLOPs + c * FLOPs of convolutions) / (peak * achieved)
    seconds     hypot(launches, memory + arithmetic)                    host and chip overlap

`peak` and `bandwidth` are the data sheet's. `achieved` is the share of the peak that matrix
products reach on the chip; it is kept with the chip and measured by others where that is possible.
c is `arithmetic` in 16 bits and tf32, and `convolution_fp32` in fp32, where cuDNN's Winograd
algorithm saves multiplications. In training, the memory of convolutions takes
`convolution_training` times as long, and nothing else takes longer than its counted sums say. With
torch.compile, memory and arithmetic and launches are divided by `compiled`.

Memory and arithmetic are added: a chip overlaps them inside one kernel but not from kernel to
kernel, and a sum fits published measurements better than a maximum.

s is 1 from `step_kernels` kernels on. No step of fewer was published at a small batch, where the
host limits it. It is given the seconds for each kernel of one with `step_kernels`, as an
assumption: s is kernels / step_kernels.

The numbers are in step_time.json, each with what it was fitted on, beside the measured error.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from course_tools.estimate.chips import Chip
from course_tools.estimate.counting.work import Work
from course_utils.text import format_seconds

STEP_TIME_FILE = Path(__file__).parent / "step_time.json"


@dataclass(frozen=True)
class Host:
    """The computer that launches the kernels.

    Attributes:
        step_s: seconds that it needs for each step.
        launch_s: seconds that it needs for each kernel.
        source: where these two come from, in a few words.
    """

    step_s: float
    launch_s: float
    source: str


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
        """Seconds of the step, in which host and chip overlap."""
        return math.hypot(self.launch_s, self.device_s)

    @property
    def limit(self) -> str:
        """Whether "launches", "memory" or "arithmetic" limits the step.

        Launches do where the host needs longer than the chip; a faster chip then helps little.
        """
        if self.launch_s > self.device_s:
            return "launches"
        return "memory" if self.memory_s > self.arithmetic_s else "arithmetic"

    def __repr__(self) -> str:
        parts = (
            f"launches {format_seconds(self.launch_s)}, memory {format_seconds(self.memory_s)}, "
            f"arithmetic {format_seconds(self.arithmetic_s)}"
        )
        total = format_seconds(self.total_s)
        return f"estimated {total} a step ({parts}): limited by {self.limit}"


@cache
def fitted() -> dict[str, Any]:
    """Return the fitted numbers, each with what it was fitted on, and the measured errors."""
    return dict(json.loads(STEP_TIME_FILE.read_text(encoding="utf-8")))


@cache
def numbers() -> dict[str, float]:
    """Return the values of the fitted numbers by their names."""
    return {name: float(entry["value"]) for name, entry in fitted()["numbers"].items()}


def cloud_host() -> Host:
    """Return the host that stands for those of clouds."""
    known = numbers()
    return Host(known["step_s"], known["launch_s"], fitted()["numbers"]["launch_s"]["fitted_on"])


def step_time(
    work: Work, chip: Chip, *, host: Host | None = None, compiled: bool = False
) -> StepTime:
    """Estimate the time of a counted step on a chip.

    Args:
        work: the step, from `count_work`.
        chip: from `find_chip`, or your own.
        host: what launches the kernels, or None for a typical host of a cloud.
        compiled: whether the model goes through torch.compile.

    Raises:
        ValueError: the chip has no peak for the precision that the work was counted in.
    """
    return seconds(
        work,
        peak=chip.peak(work.precision) * chip.achieved(work.precision),
        bandwidth=chip.bandwidth_gb_per_s * 1e9,
        numbers=numbers(),
        host=host or cloud_host(),
        one_launch=chip.vendor == "Google",  # XLA makes one program of a step
        compiled=compiled,
    )


def seconds(
    work: Work,
    *,
    peak: float,
    bandwidth: float,
    numbers: Mapping[str, float],
    host: Host,
    one_launch: bool = False,
    compiled: bool = False,
) -> StepTime:
    """Return the time of a step: the model itself, numbers in and seconds out.

    Args:
        peak: arithmetic operations a second that matrix products achieve.
        bandwidth: bytes a second, of the data sheet.
        numbers: the fitted ones, by name.
        host: what launches the kernels.
        one_launch: whether all kernels are launched as one program.
        compiled: whether torch.compile is used.
    """
    convolution = work.convolution
    again = numbers["convolution_training"] if work.training else 1.0
    of_convolutions = numbers["convolution_fp32" if work.precision == "fp32" else "arithmetic"]
    other_bytes = work.bytes_moved - convolution.bytes_moved
    other_flops = work.flops - convolution.flops
    moved = numbers["memory"] * other_bytes
    moved += again * numbers["convolution_memory"] * convolution.bytes_moved
    calculated = numbers["arithmetic"] * other_flops
    calculated += of_convolutions * convolution.flops
    launches = 1 if one_launch else work.kernels
    share = 1.0 if one_launch else min(1.0, max(1, work.kernels) / numbers["step_kernels"])
    gain = numbers["compiled"] if compiled else 1.0
    return StepTime(
        launch_s=(share * host.step_s + host.launch_s * launches) / gain,
        memory_s=moved / bandwidth / gain,
        arithmetic_s=calculated / peak / gain,
    )
