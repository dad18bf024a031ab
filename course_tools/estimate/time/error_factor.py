"""How far an estimate may be off: one factor, and allowances for host, loop and card."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from course_tools.estimate.chips import Chip, find_chip
from course_tools.estimate.counting.work import Work
from course_tools.estimate.time.step_time import StepTime, fitted

LARGE = 3e8  # parameters of a language model whose step hides what a loop does beside it


@dataclass(frozen=True)
class ErrorFactor:
    """The factors by which an estimate may be off, and the reasons for them.

    Attributes:
        factor: in nine cases of ten the truth is no less than estimate / factor.
        checked: whether such work and such a card were compared with measurements of two sources or
            more, and in the middle it was off by no more than 1.3.
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


def error_factor(work: Work, chip: Chip, time: StepTime, *, compiled: bool = False) -> ErrorFactor:
    """Return how far the estimate of `work` on `chip` may be off.

    The seconds of the host and those of the chip have a factor each. That of the chip is the usual
    one, smaller where such work was checked, and allowances. Errors of different origin are
    independent of each other, so their logarithms add like the sides of a right angle. A training
    loop does more than the step that is counted, so that the interval reaches further up than down.
    """
    known = fitted()["factors"]
    checked, entry = compared(work, chip, compiled)
    used = [entry, *_allowances(work, chip, entry)]
    down = [math.log(one["factor"]) for one in used]
    up = [math.log(one.get("slower", one["factor"])) for one in used]
    large = kind_of(work) == "transformers, fused attention" and work.parameters >= LARGE
    if work.training and not large:
        used.append(known["loops"])
        up = [*up, math.log(known["loops"]["factor"])]
    chip_down, chip_up = math.exp(math.hypot(*down)), math.exp(math.hypot(*up))
    host_down, host_up = chip_down, chip_up  # on a TPU all is one launch, known as little
    if chip.vendor != "Google":
        host = known["hosts training" if work.training else "hosts"]
        host_down, host_up = host["factor"], host["slower"]
        if time.launch_s > SMALL * time.total_s:
            used.append(host)
        checked = checked and time.limit != "launches"
    fast_s = math.hypot(time.launch_s / host_down, time.device_s / chip_down)
    slow_s = math.hypot(time.launch_s * host_up, time.device_s * chip_up)
    return ErrorFactor(
        time.total_s / fast_s,
        checked=checked,
        reasons=tuple(one["about"] for one in used),
        slower=slow_s / time.total_s,
    )


SMALL = 0.3  # share of a step's seconds below which its launches are not named


def _allowances(work: Work, chip: Chip, entry: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what widens the factor of the chip's seconds."""
    known, used = fitted()["factors"], []
    if chip.vendor == "AMD":
        used.append(known["AMD"])
    elif chip.vendor != "NVIDIA":
        used.append(known["vendor"])
    if not entry["near"]:
        used.append(known["cards"])
    if chip.watts is not None and chip.watts <= known["low power"]["watts"]:
        used.append(known["low power"])
    if _is_volta(work, chip):
        used.append(known["Volta"])
    return used


def _is_volta(work: Work, chip: Chip) -> bool:
    """Return whether it is a transformer in 16 bits on a V100."""
    rule = fitted()["factors"]["Volta"]
    half = precision_of(work) == "16 bits"
    return half and chip.family == "Volta" and kind_of(work) in rule["kinds"]


def compared(work: Work, chip: Chip, compiled: bool = False) -> tuple[bool, dict[str, Any]]:
    """Return whether such work was checked on such a card, and the factor for it.

    It was if two sources or more published this kind of work, in any step and precision, and one of
    them this step on this card or one of its family, or two any work on it; and if the card was off
    in no work of this kind. With torch.compile sources differ too much for that.

    Returns:
        Whether it was checked; and "factor", "about" and whether the card is "near" those that were
        compared.
    """
    known, kind = fitted()["factors"], kind_of(work)
    alike = [one for one in fitted()["evidence"] if one["kind"] == kind]
    alike = [one for one in alike if one["compiled"] == compiled]
    same_step = [one for one in alike if one["training"] == work.training]
    on_it = [one for one in same_step if _devices_like(one["devices"], chip)]
    plain = [one for one in fitted()["evidence"] if not one["compiled"]]
    who = {source for one in plain for source in _who_measured(one, chip)}
    near = bool(on_it) or len(who) > 1
    sources = {source for one in alike for source in one["sources"]}
    off = _is_volta(work, chip) or any(chip.name in one["off"] for one in alike)
    if near and len(sources) > 1 and not off and not compiled:
        about = _compared_with(kind, on_it or alike)
        return True, known["checked"] | {"about": about, "near": True}
    usual = known["compiled" if compiled else "usual" if alike else "unlike"]
    return False, usual | {"about": f"{kind}: {usual['about']}", "near": near}


def _compared_with(kind: str, groups: list[dict[str, Any]]) -> str:
    count = sum(one["measurements"] for one in groups)
    sources = sorted({source for one in groups for source in one["sources"]})
    devices = sorted({device for one in groups for device in one["devices"]})
    return (
        f"{kind}: compared with {count:,} measurement{'s' * (count > 1)} of {', '.join(sources)} "
        f"on {', '.join(devices)}"
    )


def _who_measured(entry: dict[str, Any], chip: Chip) -> set[str]:
    """Return the sources of a group of measurements that measured a chip, or one of its family."""
    measured = entry["devices"] | entry["off"]
    return {source for name in _devices_like(measured, chip) for source in measured[name]}


def _devices_like(names: Iterable[str], chip: Chip) -> list[str]:
    """Return those of some chips that are a chip, or of its family."""
    return [
        name
        for name in names
        if name == chip.name or (chip.family and find_chip(name).family == chip.family)
    ]


def precision_of(work: Work) -> str:
    """Return "fp32", "tf32" or "16 bits": that of most of its arithmetic."""
    if work.precision == "default":
        images = work.convolution.flops + work.depthwise.flops + work.convolution3d.flops
        return "tf32" if images > 0.5 * work.flops else "fp32"
    return work.precision if work.precision in ("fp32", "tf32") else "16 bits"


def kind_of(work: Work) -> str:
    """Return which kind of work this is, as step_time.json names them."""
    if work.detects:
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
    if images > 0.0005 * flops:
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
            "by published measurements of such work and such cards, and allowances for host and "
            f"loop, the step takes {_interval(checked)} times the estimate in {share} of cases "
            f"({_widest_of(checked)})"
        )
    if rest:
        parts.append(
            f"on {', '.join(rest)} too few published measurements of this kind of work agree with "
            f"the estimate, so {_interval(rest)} times the estimate is assumed"
        )
    sentence = "; ".join(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _widest_of(known: dict[str, ErrorFactor]) -> str:
    """Name the devices, and say so where their intervals differ."""
    names = list(known)
    if len({_interval({name: known[name]}) for name in names}) == 1:
        return ", ".join(names)
    return f"the widest of {', '.join(names[:-1])} and {names[-1]}; each row uses its own"


def _interval(known: dict[str, ErrorFactor]) -> str:
    """Return the widest interval of these devices."""
    down = max(one.factor for one in known.values())
    up = max(one.upper for one in known.values())
    return f"{1 / down:.2g} to {up:.2g}"
