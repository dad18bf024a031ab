"""The model of time: from the counted sums of a step to seconds on a chip, without torch.

::

    launches    s * step_s + launch_s * kernels                         (on a TPU, one kernel)
    memory      (memory * bytes + convolution_memory * again * bytes of convolutions) / bandwidth
    arithmetic  (arithmetic * FLOPs + a * FLOPs of attention + c * FLOPs of convolutions
                + u * FLOPs of unaligned products) / (peak * achieved)
                + FLOPs of depthwise convolutions in 32 bits / (peak in fp32 * depthwise)
    seconds     hypot(launches, memory + arithmetic)                    host and chip overlap

`peak` and `bandwidth` are the data sheet's. `achieved` is the share of the peak that matrix
products reach on the chip; it is kept with the chip and measured by others where that is possible.
c is `arithmetic` in 16 bits and tf32, and `convolution_fp32` in fp32, where cuDNN's Winograd
algorithm saves multiplications; a convolution in three dimensions takes `convolution3d` times as
long as one in two. Depthwise convolutions in 32 bits run in a kernel of PyTorch's own, which
reaches a small share of the peak (`depthwise`). a is `arithmetic` times `attention` in 16 bits.
Unaligned are products in 16 bits with rows of an odd number, such as 50,257 words, for which
NVIDIA's tensor cores take `unaligned` times as long: u is `arithmetic` times what that is more
than 1. `again` is 1 but in training: `convolution_training` in 16 bits and
`convolution_training_32` else, unless the channels come last in 16 bits or tf32; depthwise
convolutions take it always.

In the precision "default", which is what PyTorch does without being asked, convolutions are in tf32
where a card has it, and products in fp32.

torch.compile divides the launches and the bytes of all that is no product by `compiled`. A product,
convolution or attention is still launched by itself, and what a step needs once it needs all the
same.

Memory and arithmetic are added: a chip overlaps them inside one kernel but not from kernel to
kernel, and a sum fits published measurements better than a maximum.

s is 1 from `step_kernels` kernels on. No step of fewer was published at a small batch, where the
host limits it. It is given the seconds for each kernel of one with `step_kernels`, as an
assumption: s is kernels / step_kernels.

The numbers are in step_time.json, each with what it was fitted on.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from course_tools.estimate.chips import Chip
from course_tools.estimate.counting.work import Work
from course_utils.units import format_seconds

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
        return f"estimated {total} per step ({parts}): limited by {self.limit}"


HALVES = {"fp16", "bf16"}  # 16 bits, counted alike


@cache
def fitted() -> dict[str, Any]:
    """Return the fitted numbers, each with what it was fitted on, and the measured errors."""
    return dict(json.loads(STEP_TIME_FILE.read_text(encoding="utf-8")))


@cache
def numbers() -> dict[str, float]:
    """Return the values of the fitted numbers by their names."""
    return {name: float(entry["value"]) for name, entry in fitted()["numbers"].items()}


def cloud_host(chip: Chip | None = None) -> Host:
    """Return the host that stands for those of clouds: one of 2021 beside a chip of that time.

    Args:
        chip: that it serves, or None for the host of 2021.
    """
    known = numbers()
    if chip is None or chip.old_host:
        source = f"fitted on {fitted()['numbers']['launch_s']['fitted_on']}"
        return Host(known["step_s"], known["launch_s"], source)
    slower = known["launch_s"] / known["launch_new_s"]
    return Host(known["step_s"] / slower, known["launch_new_s"], "assumed for chips since 2022")


def step_time(work: Work, chip: Chip, *, compiled: bool = False) -> StepTime:
    """Estimate the time of a counted step on a chip, beside a typical host of a cloud.

    Args:
        work: the step, from `count_work`. bf16 and fp16 are counted alike, so a chip that has only
            one of them takes that.
        chip: from `find_chip`, or your own.
        compiled: whether the model goes through torch.compile.

    Raises:
        ValueError: the chip has no peak for the precision that the work was counted in.
    """
    return time_beside(cloud_host(chip), work, chip, compiled=compiled)


def time_beside(host: Host, work: Work, chip: Chip, *, compiled: bool) -> StepTime:
    """Return the time of a step whose kernels a known host launches; see `step_time`."""
    if chip.vendor != "NVIDIA":  # nothing is known of odd sizes there
        work = replace(work, unaligned=0.0)
    precision = work.precision
    if precision in HALVES - chip.peaks.keys() and HALVES & chip.peaks.keys():
        precision = "amp"
    products = convolutions = chip.at(precision)
    if products == "default":
        products, convolutions = "fp32", "tf32" if "tf32" in chip.peaks else "fp32"
    return seconds(
        work,
        peak=chip.peak(products) * chip.achieved(products),
        convolution_peak=chip.peak(convolutions) * chip.achieved(convolutions),
        plain_peak=chip.peaks.get("fp32", 0.0) * 1e12 or chip.peak(products),
        winograd=convolutions == "fp32",
        bandwidth=chip.bandwidth_gb_per_s * 1e9,
        numbers=numbers(),
        host=host,
        one_launch=chip.vendor == "Google",  # XLA makes one program of a step
        compiled=compiled,
    )


def seconds(
    work: Work,
    *,
    peak: float,
    convolution_peak: float,
    plain_peak: float,
    winograd: bool,
    bandwidth: float,
    numbers: Mapping[str, float],
    host: Host,
    one_launch: bool = False,
    compiled: bool = False,
) -> StepTime:
    """Return the time of a step: the model itself, numbers in and seconds out.

    Args:
        peak: arithmetic operations per second that matrix products achieve.
        convolution_peak: the same of convolutions.
        plain_peak: of the data sheet, in fp32, outside tensor cores.
        winograd: whether convolutions may save multiplications.
        bandwidth: bytes per second, of the data sheet.
        numbers: the fitted ones, by name.
        host: what launches the kernels.
        one_launch: whether all kernels are launched as one program.
        compiled: whether torch.compile is used.
    """
    half = work.precision in HALVES
    per_flop = numbers["arithmetic"]
    products = work.matrix.flops + work.recurrent.flops + work.other.flops
    products += (numbers["attention"] if half else 1.0) * work.attention.flops
    if half:
        products += (numbers["unaligned"] - 1) * work.unaligned
    per_convolution = numbers["convolution_fp32"] if winograd else per_flop
    flops = per_convolution * work.convolution.flops
    flops += per_flop * numbers["convolution3d"] * work.convolution3d.flops
    if half:
        flops += per_flop * work.depthwise.flops
    arithmetic_s = per_flop * products / peak + flops / convolution_peak
    if not half:
        arithmetic_s += work.depthwise.flops / (numbers["depthwise"] * plain_peak)
    gain = numbers["compiled_training" if work.training else "compiled"] if compiled else 1.0
    others = work.other
    kept = work.bytes_moved - others.bytes_moved - _of_convolutions(work)
    moved = numbers["memory"] * (kept + others.bytes_moved / gain)
    moved += _convolution_bytes(work, numbers)
    launches = 1.0 if one_launch else work.kernels - others.kernels + others.kernels / gain
    share = 1.0 if one_launch else min(1.0, max(1, work.kernels) / numbers["step_kernels"])
    return StepTime(
        launch_s=share * host.step_s + host.launch_s * launches,
        memory_s=moved / bandwidth,
        arithmetic_s=arithmetic_s,
    )


def _of_convolutions(work: Work) -> float:
    kinds = work.convolution, work.depthwise, work.convolution3d
    return sum(sums.bytes_moved for sums in kinds)


def _convolution_bytes(work: Work, numbers: Mapping[str, float]) -> float:
    """Return the bytes of convolutions, with the times that they are moved again."""
    again = 1.0
    if work.training:
        half = work.precision in HALVES
        again = numbers["convolution_training" if half else "convolution_training_32"]
    # in fp32, outside the tensor cores, cuDNN has no use for the channels last
    once = 1.0 if work.channels_last and work.precision != "fp32" else again
    moved = once * work.convolution.bytes_moved + again * work.depthwise.bytes_moved
    moved += again * numbers["convolution3d"] * work.convolution3d.bytes_moved
    return numbers["convolution_memory"] * moved
