"""Error factors of an estimate: measured ones, and wider ones where nothing was checked."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from course_tools.estimate.chips import Chip
from course_tools.estimate.counting.work import Work
from course_tools.estimate.time.step_time import StepTime, fitted


@dataclass(frozen=True)
class ErrorFactor:
    """The factor by which an estimate may be off, and the reasons for it.

    Attributes:
        factor: the truth lies between estimate / factor and estimate * factor in nine cases of ten.
        checked: whether published measurements of such work on such a chip were compared.
        reasons: what the factor was measured on, and what was assumed because nothing was measured.
    """

    factor: float
    checked: bool
    reasons: tuple[str, ...]


def error_factor(
    work: Work, chip: Chip, time: StepTime, *, compiled: bool = False, own_host: bool = False
) -> ErrorFactor:
    """Return how far the estimate of `work` on `chip` may be off, by what was checked for its like.

    Errors of different origin are independent of each other, so their logarithms add like the sides
    of a right angle.
    """
    known = fitted()["factors"]
    kind = kind_of(work)
    keys = [kind]
    if compiled:
        keys.append("compiled training" if work.training else "compiled")
    if time.limit == "launches":
        keys.append("own host" if own_host else "launches")
    if chip.vendor == "AMD":
        keys.append("AMD")
        compared = known["AMD"]["checked"] if kind == known["AMD"]["kind"] else []
    elif chip.vendor != "NVIDIA":
        keys.append("vendor")
        compared = [chip.name]  # the factor of the vendor says that none was
    else:
        compared = known[kind]["checked"]
    if chip.name not in compared:
        keys.append("cards")
    if work.recurrent.flops > 0.1 * work.flops:
        keys.append("recurrent")
    used = [known[key] for key in keys]
    total = math.hypot(*(math.log(entry["factor"]) for entry in used))
    checked = "cards" not in keys and not any(entry.get("assumed") for entry in used)
    return ErrorFactor(math.exp(total), checked, tuple(entry["about"] for entry in used))


def kind_of(work: Work) -> str:
    """Return which of the checked kinds of work this is like, as step_time.json names them."""
    step = "training" if work.training else "inference"
    if work.convolution.flops > 0.5 * work.flops:
        return f"convolutions, {step}"
    return f"matrix products, {'fp32' if work.precision == 'fp32' else '16 bits'}"


def in_one_sentence(known: dict[str, ErrorFactor]) -> str:
    """Return in one sentence how sure the estimates for these devices are."""
    share = f"{fitted()['share']:.0%}"
    checked = {device: one for device, one in known.items() if one.checked}
    rest = {device: one for device, one in known.items() if not one.checked}
    parts = []
    if checked:
        parts.append(
            f"in {share} of published measurements of such work the truth lay within a factor of "
            f"{_factors(checked.values())} ({_list(checked)})"
        )
    if rest:
        what = "nothing like it was measured on"
        parts.append(f"{what} {_list(rest)}, so a factor of {_factors(rest.values())} is assumed")
    sentence = "; ".join(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _factors(known: Iterable[ErrorFactor]) -> str:
    found = sorted({f"{one.factor:.2g}" for one in known})
    return found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}"


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
