"""What was found on a machine, what the doctor says of it, and the judgement that every family
shares.
"""

from __future__ import annotations

import configparser
import pkgutil
import re
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

from course_utils.doctor.children import Outcome
from course_utils.hardware.machine import Package
from course_utils.hardware.nvidia import Card
from course_utils.text import clean, html_card

# What the doctor says of every cause that it can name: `remedies.ini`, one section a cause.
REMEDIES = configparser.ConfigParser(interpolation=None, delimiters="=")
REMEDIES.read_string((pkgutil.get_data("course_utils.doctor", "remedies.ini") or b"").decode())
PLACES = REMEDIES["places"]
INSTALL = REMEDIES["install"][
    "course" if (Path(__file__).parents[2] / "Makefile").exists() else "elsewhere"
]
# What a kernel, a driver or nvidia-smi says (a pattern), and the cause that it names.
SAYINGS = {
    REMEDIES[cause]["said"]: cause for cause in REMEDIES.sections() if "said" in REMEDIES[cause]
}


@dataclass(frozen=True, repr=False)
class Finding:
    """What the doctor says of one accelerator family."""

    family: str  # one of `KINDS`
    usable: bool  # True when a kernel ran on it and its answer agreed with the CPU's
    cause: str  # one word for scripts, such as "works" or "no-driver": a section of `remedies.ini`
    why: str  # the cause in words, with what was found
    fix: str  # what to do about it, in the place where this runs; "" when there is nothing to do

    @property
    def works(self) -> str:
        """Return "yes" or "no", for a person."""
        return "yes" if self.usable else "no"

    def __repr__(self) -> str:
        fix = f"\n  Fix: {clean(self.fix, 600)}" if self.fix else ""
        return f"{self.family}: {self.cause}\n  Why: {clean(self.why, 900)}{fix}"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, ...]] = [
            ("works", self.works),
            ("why", self.why),
            ("fix", self.fix or "nothing to do"),
        ]
        return html_card(f"{self.family}: {self.cause}", ("", "the doctor says"), rows)


@dataclass(frozen=True)
class Evidence:
    """All that was found: files and variables first, then how each child process ended."""

    place: str
    torch: Package
    probes: dict[str, Outcome]
    torch_xla: Package = field(default_factory=Package)
    torch_tpu: Package = field(default_factory=Package)
    variables: dict[str, str] = field(default_factory=dict)
    graphics: list[tuple[str, str]] = field(default_factory=list)  # PCI numbers of vendor and model
    tpu_chips: int = 0
    container: bool = False
    wsl: bool = False  # Linux inside of Windows

    def probe(self, name: str) -> Outcome:
        """Return how one probe ended; one that was not started has told nothing."""
        return self.probes.get(name, Outcome("badly"))

    @property
    def cards(self) -> list[Card]:
        """The cards that the NVIDIA driver lists."""
        return [Card(**card) for card in self.probe("nvidia").told.get("cards", ())]

    def found(self, family: str, cause: str, *, usable: bool = False, **words: object) -> Finding:
        """Return the finding of one cause, with the words for its braces filled in, and the fix for
        this place.
        """
        section, keys = (
            REMEDIES[cause],
            (f"fix.{self.place}", f"fix.{words.get('maker', family)}", "fix"),
        )
        parts = (section, REMEDIES[section.get("places", cause)])
        fix = next(part[key] for key in keys for part in parts if key in part)
        known = {"place": PLACES[self.place], "install": INSTALL, "python": sys.executable}
        known.update(dict.fromkeys(("name", "capability", "archs", "step"), "unknown"))
        words = {**known, "version": self.torch.version, "xla": self.torch_xla.version, **words}
        why, fix = (text.replace("\n", " ").format(**words) for text in (section["why"], fix))
        return Finding(family, usable, cause, why, fix)


def judge(family: str, outcome: Outcome, evidence: Evidence, note: str = "") -> Finding:
    """Return why a child told nothing useful, or else what its kernels say.

    A family is usable when the answers of one device agree with the CPU's; the cause is the first
    thing wrong.
    """
    bad = [kernel for kernel in outcome.kernels if "failed" in kernel or "wrong" in kernel]
    good = [kernel["device"] for kernel in outcome.kernels if kernel not in bad]
    if silence := no_answer(family, outcome, evidence):
        return replace(silence, usable=bool(good))
    if not bad:
        ran = "ran" if family == "cpu" else f"on {', '.join(good)} agree with the CPU's"
        what = f"An addition, a matrix product, a convolution and a gradient {ran}.{note}"
        return evidence.found(family, "works", usable=bool(good), what=what)
    about, archs = outcome.told.get(bad[0]["device"], {}), outcome.told.get("archs", [])
    kernel = {
        "error": "",
        "capability": [],
        "step": bad[0].get("wrong") or bad[0].get("failed"),
        **about,
        **bad[0],
    }
    words = {
        **kernel,
        "capability": ".".join(map(str, kernel["capability"])) or "unknown",
        "archs": " ".join(archs),
    }
    return evidence.found(family, _cause(kernel, archs, evidence.place), usable=bool(good), **words)


def no_answer(family: str, outcome: Outcome, evidence: Evidence) -> Finding | None:
    """Return why a child told nothing useful, or None when it did."""
    step, error = outcome.told.get("step", "starting Python"), outcome.told.get("error")
    if error and step.endswith(" torch"):  # importing it, or loading TorchTPU with it
        return evidence.found(family, "broken-install", error=error)
    # a driver may die there
    if (outcome.ended == "well" and not error) or step == "listing the devices":
        return None
    ended = (
        "kernel-failed"
        if error
        else {"killed": "died", "late": "hangs"}.get(outcome.ended, "kernel-failed")
    )
    lines = [error] if error else outcome.noise.splitlines() or ["no message"]
    error = next(filter(meaning, lines), lines[-1])
    words = {
        "step": step,
        "signal": outcome.signal,
        "limit": f"{outcome.limit_s:g}",
        "device": family,
        "error": error,
    }
    return evidence.found(family, meaning(error) or ended, **words)


def meaning(said: str) -> str:
    """Return the cause that a message names, or "" when it names none."""
    return next((cause for words, cause in SAYINGS.items() if re.search(words, said)), "")


def _cause(kernel: dict, archs: list[str], place: str) -> str:
    """Return why a kernel went wrong under a torch that was built for the architectures `archs`."""
    if "wrong" in kernel:
        return "wrong-answer"
    error = kernel["error"]
    cause = meaning(error) or "kernel-failed"
    built = [(int(arch[3:-1]), int(arch[-1])) for arch in archs if re.fullmatch(r"sm_\d+", arch)]
    if cause == "card-too-old" and built and tuple(kernel["capability"]) > max(built):
        return "card-too-new"
    # GitHub's virtual Macs list MPS and refuse its first bytes (actions/runner-images 9918 and
    # 11899).
    virtual = kernel["device"] == "mps" and (place == "ci" or "other allocations: 0 bytes" in error)
    return "mps-unavailable" if cause == "out-of-memory" and virtual else cause
