"""What was found on a machine, what the doctor says of it, and the judgement that every family shares."""

import re
from dataclasses import dataclass, field

from course_utils.display.cards import clean, html_card
from course_utils.doctor.children import IMPORTING, Outcome
from course_utils.doctor.remedies import explain
from course_utils.hardware.machine import PciDevice


@dataclass(frozen=True, repr=False)
class Finding:
    """What the doctor says of one accelerator family.

    Attributes:
        family: one of `devices.KINDS`.
        usable: True when a kernel ran on it and its answer agreed with the CPU's.
        cause: one word for scripts, such as "works" or "no-driver": a key of `remedies.REMEDIES`.
        why: the cause in words, with what was found.
        fix: what to do about it, in the place where this runs; "" when there is nothing to do.
    """

    family: str
    usable: bool
    cause: str
    why: str
    fix: str

    @property
    def works(self) -> str:
        """Return "yes" or "no", for a person."""
        return "yes" if self.usable else "no"

    def __repr__(self) -> str:
        fix = f"\n  Fix: {clean(self.fix, 600)}" if self.fix else ""
        return f"{self.family}: {self.cause}\n  Why: {clean(self.why, 900)}{fix}"

    def _repr_html_(self) -> str:
        rows = [("works", self.works), ("why", self.why), ("fix", self.fix or "nothing to do")]
        return html_card(f"{self.family}: {self.cause}", ("", "the doctor says"), rows)


@dataclass(frozen=True)
class Package:
    """An installed distribution as its files describe it, without importing it."""

    version: str
    cuda: str | None = None
    hip: str | None = None

    @property
    def minor(self) -> tuple[int, int]:
        """The first two parts of the version, such as (2, 9)."""
        numbers = re.findall(r"\d+", self.version)
        return int(numbers[0]), int(numbers[1])


@dataclass(frozen=True)
class Evidence:
    """All that was found: files and variables first, then how each child process ended."""

    place: str
    system: str
    python: str
    variables: dict[str, str]
    pci: list[PciDevice]
    tpu_chips: int
    torch: Package | None
    torch_xla: Package | None
    torch_tpu: Package | None
    limit_s: float
    smi: Outcome = field(default_factory=lambda: Outcome("badly"))
    probes: dict[str, Outcome] = field(default_factory=dict)

    def found(self, family: str, cause: str, *, usable: bool = False, **words: object) -> Finding:
        """Return the finding of one cause, with its words filled in for this place."""
        why, fix = explain(cause, self.place, **words)
        return Finding(family, usable, cause, why, fix)


def no_answer(family: str, outcome: Outcome, evidence: Evidence) -> Finding | None:
    """Return why a child told nothing useful, or None when it did."""
    told = outcome.told
    if "import_error" in told:
        return evidence.found(family, "broken-install", error=told["import_error"])
    if outcome.ended == "killed":
        return evidence.found(family, "died", signal=outcome.signal, step=told.get("step", "starting Python"))
    if outcome.ended == "late":
        step = told.get("step", "starting Python")
        limit_s = evidence.limit_s * (IMPORTING if step.startswith("importing") else 1)
        return evidence.found(family, "hangs", limit=f"{limit_s:g}", step=step)
    if outcome.ended == "badly":
        error = outcome.noise.strip().splitlines()[-1:] or ["no message"]
        return evidence.found(
            family, "kernel-failed", device=family, step=told.get("step", "starting Python"), error=error[0]
        )
    return None


def judge_kernels(family: str, outcome: Outcome, evidence: Evidence, note: str = "") -> Finding:
    """Judge a family by the kernels that ran: usable when one device's answers agree, with the first thing wrong."""
    bad = [kernel for kernel in outcome.kernels if "failed" in kernel or "wrong" in kernel]
    good = [kernel["device"] for kernel in outcome.kernels if kernel not in bad]
    if not bad:
        what = f"An addition, a matrix product and a gradient on {', '.join(good)} agree with the CPU's.{note}"
        if family == "cpu":
            what = "An addition, a matrix product and a gradient ran."
        return evidence.found(family, "works", usable=bool(good), what=what)
    first = bad[0]
    device = first["device"]
    about = outcome.told.get(device, {})
    words = {"device": device, "error": first.get("error", ""), "name": about.get("name", "")}
    if "wrong" in first:
        cause, words["step"], words["difference"] = "wrong-answer", first["wrong"], first["difference"]
    elif "no kernel image" in words["error"]:
        words["capability"] = ".".join(map(str, about.get("capability", ["unknown"])))
        cause, words["archs"] = "card-too-old", " ".join(outcome.told.get("archs", []))
    elif first["kind"] == "OutOfMemoryError" or "out of memory" in words["error"]:
        cause = "out-of-memory"
    else:
        cause, words["step"] = "kernel-failed", first["failed"]
    return evidence.found(family, cause, usable=bool(good), **words)
