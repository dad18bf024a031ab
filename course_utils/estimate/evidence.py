"""How far off an estimate may be: factors measured on published speeds, and wider ones where
nothing was checked.
"""

import math
from dataclasses import dataclass

from course_utils.estimate.chips import Chip
from course_utils.estimate.counting import Work
from course_utils.estimate.steptime import StepTime, fitted


@dataclass(frozen=True)
class Evidence:
    """What an interval stands on.

    Attributes:
        factor: the truth lies between estimate / factor and estimate * factor in nine cases of ten.
        checked: whether published measurements of such work on such a chip were compared.
        reasons: what the factor was measured on, and what was assumed because nothing was measured.
    """

    factor: float
    checked: bool
    reasons: tuple[str, ...]


def what_they_stand_on(known: dict[str, Evidence]) -> list[str]:
    """Return sentences that say, for the device of each name, how far off its estimate may be and
    why.
    """
    factors: dict[str, list[str]] = {}
    reasons: dict[str, list[str]] = {}
    for device, one in known.items():
        factors.setdefault(f"{one.factor:.2g}", []).append(device)
        for why in one.reasons:
            reasons.setdefault(why, []).append(device)
    shared = "; ".join(why for why, devices in reasons.items() if len(devices) == len(known))
    said = ", ".join(f"{factor} ({', '.join(devices)})" for factor, devices in factors.items())
    cases = f"In {fitted()['share']:.0%} of cases"
    lines = [f"{cases} the truth should be within a factor of {said}: {shared}."] if known else []
    return lines + [
        f"{', '.join(devices)}: {why}."
        for why, devices in reasons.items()
        if len(devices) < len(known)
    ]


def evidence(work: Work, chip: Chip, time: StepTime) -> Evidence:
    """Return how far the estimate of `work` on `chip` may be off, by what was checked for its like.

    Errors of different origin are independent of each other, so their logarithms add like the sides
    of a right angle.
    """
    known, kind = fitted()["factors"], "training" if work.training else "inference"
    keys = [kind]
    keys += ["launches"] if time.launch_s > time.device_s else []
    if chip.vendor != "NVIDIA":
        keys.append("vendor")
    elif chip.name not in known[kind]["checked"]:
        keys.append("cards")
    if any(op.kind == "recurrent" for op in work.ops):
        keys.append("recurrent")
    elif {op.name for op in work.ops} - set(known["operations"]["checked"]):
        keys.append("operations")
    logs = [math.log(known[key]["factor"]) for key in keys]
    assumed = "cards" in keys or any(known[key].get("assumed") for key in keys)
    reasons = tuple(
        known[key]["about"].format(factor=known[key]["factor"], kind=kind) for key in keys
    )
    return Evidence(math.exp(math.hypot(*logs)), not assumed, reasons)
