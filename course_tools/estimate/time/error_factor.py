"""How far an estimate may be off: by what was compared of its kind, and more where nothing was."""

import math
from dataclasses import dataclass
from typing import Any

from course_tools.estimate.chips import Chip
from course_tools.estimate.counting.work import BOXES, Work
from course_tools.estimate.time.step_time import (
    StepTime,
    fastest_host,
    fitted,
    numbers,
    slowest_host,
    step_time,
)

LARGE = 3e8  # parameters of a language model whose step hides what a loop does beside it


@dataclass(frozen=True)
class ErrorFactor:
    """The factors by which an estimate may be off, and the reasons for them.

    Attributes:
        factor: in nine cases of ten the truth is no less than estimate / factor.
        checked: whether measurements of such work, published by two sources or more, were compared,
            this chip is among theirs, and in the middle it was off by no more than 1.3.
        reasons: what the factor was measured on, and what was assumed because nothing was measured.
        slower: in nine cases of ten the truth is no more than estimate * slower; None for `factor`.
    """

    factor: float
    checked: bool
    reasons: tuple[str, ...]
    slower: float | None = None

    @property
    def upper(self) -> float:
        """The factor towards slower."""
        return self.factor if self.slower is None else self.slower


def error_factor(
    work: Work, chip: Chip, time: StepTime, *, compiled: bool = False, own_host: bool = False
) -> ErrorFactor:
    """Return how far the estimate of `work` on `chip` may be off, by what was checked for its like.

    Errors of different origin are independent of each other, so their logarithms add like the sides
    of a right angle. What hosts need for a kernel is a range of its own, and a training loop does
    more than the step that is counted, so that the interval reaches further up than down.
    """
    known = fitted()["factors"]
    entry, exact = compared(work, compiled)
    used = [entry]
    if chip.vendor == "AMD":
        used.append(known["AMD"])
        like = entry["kind"] == known["AMD"]["kind"] and precision_of(work) == "fp32"
        devices = known["AMD"]["devices"] if like else []
    elif chip.vendor != "NVIDIA":
        used.append(known["vendor"])
        devices = [chip.name]  # the factor of the vendor says that none was
    else:
        devices = entry["devices"]
    off = [one for one in entry["off"] if one["device"] == chip.name]
    used += off
    if chip.name not in devices:
        used.append(known["cards"])
    if chip.watts is not None and chip.watts <= known["low power"]["watts"] and not off:
        used.append(known["low power"])
    down = up = [math.log(one["factor"]) for one in used]
    if own_host and time.limit == "launches":
        used.append(known["own host"])
        down = up = [*down, math.log(known["own host"]["factor"])]
    elif not own_host and chip.vendor != "Google" and work.kernels:
        fast, slow = (
            step_time(work, chip, host=host, compiled=compiled).total_s
            for host in (fastest_host(), slowest_host())
        )
        if slow > known["hosts"]["factor"] * fast:
            used.append(known["hosts"])
        down = [*down, math.log(time.total_s / fast)]
        up = [*up, max(0.0, math.log(slow / time.total_s))]
    measured_host = own_host or chip.vendor == "Google"
    if not measured_host and time.limit == "launches" and work.kernels < numbers()["step_kernels"]:
        used.append(known["few kernels"])
        down = [*down, math.log(known["few kernels"]["factor"])]
        up = [*up, math.log(known["few kernels"]["factor"])]
    large = entry["kind"] == "transformers, fused attention" and work.parameters >= LARGE
    if work.training and not large:
        used.append(known["loops"])
        up = [*up, math.log(known["loops"]["factor"])]
    assumed = any(one.get("assumed") for one in used)
    return ErrorFactor(
        math.exp(math.hypot(*down)),
        checked=exact and chip.name in devices and not assumed,
        reasons=tuple(one["about"] for one in used),
        slower=math.exp(math.hypot(*up)),
    )


def compared(work: Work, compiled: bool = False) -> tuple[dict[str, Any], bool]:
    """Return the evidence that is nearest to some work, and whether it is of exactly its kind.

    The nearest is of the same kind, then of the same step and precision; where nothing is, what was
    seen on kinds that had not been compared when they were tried.
    """
    kind, precision = kind_of(work), precision_of(work)
    alike = [one for one in fitted()["evidence"] if one["kind"] == kind]
    for one in alike:
        if (one["precision"], one["training"], one["compiled"]) == (
            precision,
            work.training,
            compiled,
        ):
            return one, True
    unlike = fitted()["factors"]["unlike"]
    alike = [one for one in alike if one["compiled"] == compiled]
    if not alike:
        return unlike | {"kind": kind, "devices": [], "off": []}, False
    near = max(alike, key=lambda one: (one["training"] == work.training, one["factor"]))
    factor = math.exp(math.hypot(math.log(near["factor"]), math.log(unlike["near"])))
    about = f"{near['about']}; this precision or step was not, so the factor is wider"
    return near | {"factor": factor, "about": about, "assumed": True}, False


def precision_of(work: Work) -> str:
    """Return "fp32", "tf32" or "16 bits"."""
    return work.precision if work.precision in ("fp32", "tf32") else "16 bits"


def kind_of(work: Work) -> str:
    """Return which kind of work this is, as step_time.json names them."""
    if BOXES in work.assumed:
        return "detection"
    flops = work.flops
    images = work.convolution.flops + work.depthwise.flops + work.convolution3d.flops
    if work.recurrent.flops > 0.1 * flops:
        return "recurrent layers"
    if work.convolution3d.flops > 0.1 * flops:
        return "3-D convolutions"
    if images > 0.1 * flops and work.attention.flops > 0.01 * flops:
        return "convolutions with attention"
    if images > 0.5 * flops:
        moved = work.convolution.bytes_moved + work.depthwise.bytes_moved
        deep = work.depthwise.bytes_moved > 0.2 * moved
        return "depthwise convolutions" if deep else "2-D convolutions"
    if images > 0.001 * flops:
        return "vision transformers"
    return "transformers, fused attention" if work.attention.flops else "matrix products"


def in_one_sentence(known: dict[str, ErrorFactor]) -> str:
    """Return in one sentence how sure the estimates for these devices are."""
    share = f"{fitted()['share']:.0%}"
    checked = {device: one for device, one in known.items() if one.checked}
    rest = {device: one for device, one in known.items() if not one.checked}
    parts = []
    if checked:
        parts.append(
            f"by published measurements of this kind of work, and allowances for host and loop, "
            f"the step takes {_interval(checked)} times the estimate in {share} of cases "
            f"({', '.join(checked)})"
        )
    if rest:
        parts.append(
            f"on {', '.join(rest)} too few published measurements of this kind of work agree with "
            f"the estimate, so {_interval(rest)} times the estimate is assumed"
        )
    sentence = "; ".join(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _interval(known: dict[str, ErrorFactor]) -> str:
    """Return the widest interval of these devices."""
    down = max(one.factor for one in known.values())
    up = max(one.upper for one in known.values())
    return f"1/{down:.2g} to {up:.2g}"
