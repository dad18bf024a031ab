"""What was found on a machine, what the doctor says of it, and the judgement that every family shares."""

from __future__ import annotations

import configparser
import importlib.metadata
import importlib.util
import pkgutil
import re
from dataclasses import dataclass, field
from pathlib import Path

from course_utils.display.cards import clean, html_card
from course_utils.doctor.children import IMPORTING, Outcome
from course_utils.hardware import KINDS
from course_utils.hardware.machine import PciDevice, read_text

# What the doctor says of every cause that it can name: `remedies.ini`, one section a cause.
REMEDIES = configparser.ConfigParser(interpolation=None, delimiters="=")
REMEDIES.read_string((pkgutil.get_data("course_utils.doctor", "remedies.ini") or b"").decode())
PLACES = REMEDIES["places"]
CHECKOUT = (Path(__file__).parents[2] / "Makefile").exists()
INSTALL = REMEDIES["install"]["course" if CHECKOUT else "elsewhere"]

FAMILIES = KINDS


@dataclass(frozen=True, repr=False)
class Finding:
    """What the doctor says of one accelerator family.

    Attributes:
        family: one of `FAMILIES`.
        usable: True when a kernel ran on it and its answer agreed with the CPU's.
        cause: one word for scripts, such as "works" or "no-driver": a section of `remedies.ini`.
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
        rows: list[tuple[str, ...]] = [("works", self.works), ("why", self.why), ("fix", self.fix or "nothing to do")]
        return html_card(f"{self.family}: {self.cause}", ("", "the doctor says"), rows)


@dataclass(frozen=True)
class Package:
    """A distribution as its files describe it, without importing it; the version is "" where it is not installed."""

    version: str = ""
    cuda: str | None = None
    hip: str | None = None

    @property
    def minor(self) -> tuple[int, int]:
        """The first two parts of the version, such as (2, 9)."""
        numbers = re.findall(r"\d+", self.version)
        return int(numbers[0]), int(numbers[1])


def read_package(name: str) -> Package:
    """Read a distribution's version, and what torch was built for, from its files: importing may be what fails."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return Package()
    text = read_text(Path(spec.origin).parent / "version.py")
    told = dict(re.findall(r"^(__version__|cuda|hip)\b[^=]*=\s*['\"]([^'\"]+)['\"]", text, re.MULTILINE))
    try:
        version = told.get("__version__") or importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        version = "0.0 (unknown)"
    return Package(version, told.get("cuda"), told.get("hip"))


@dataclass(frozen=True)
class Evidence:
    """All that was found: files and variables first, then how each child process ended."""

    place: str
    torch: Package
    probes: dict[str, Outcome]
    torch_xla: Package = Package()
    torch_tpu: Package = Package()
    smi: Outcome = field(default_factory=lambda: Outcome("badly"))
    system: str = ""
    python: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    pci: list[PciDevice] = field(default_factory=list)
    tpu_chips: int = 0
    container: bool = False
    wsl: str | None = None  # where Windows' driver for Linux is, "" where it is not, None outside of WSL
    limit_s: float = 0

    def probe(self, name: str) -> Outcome:
        """Return how one probe ended; one that was not started has told nothing."""
        return self.probes.get(name, Outcome("badly"))

    def found(self, family: str, cause: str, *, usable: bool = False, **words: object) -> Finding:
        """Return the finding of one cause, with the words for its braces filled in, and the fix for this place."""
        section = REMEDIES[cause]
        fix = REMEDIES[section.get("places", cause)].get(f"fix.{self.place}", section["fix"])
        words = {"place": PLACES[self.place], "install": INSTALL, **words}
        why, fix = (text.replace("\n", " ").format(**words) for text in (section["why"], fix))
        return Finding(family, usable, cause, why, fix)


def judge(family: str, outcome: Outcome, evidence: Evidence, note: str = "") -> Finding:
    """Return why a child told nothing useful, or else what its kernels say."""
    return no_answer(family, outcome, evidence) or _judge_kernels(family, outcome, evidence, note)


def no_answer(family: str, outcome: Outcome, evidence: Evidence) -> Finding | None:
    """Return why a child told nothing useful, or None when it did."""
    step = outcome.told.get("step", "starting Python")
    if "import_error" in outcome.told:
        return evidence.found(family, "broken-install", error=outcome.told["import_error"])
    if outcome.ended == "killed":
        return evidence.found(family, "died", signal=outcome.signal, step=step)
    if outcome.ended == "late":
        limit_s = evidence.limit_s * (IMPORTING if step.startswith("importing") else 1)
        return evidence.found(family, "hangs", limit=f"{limit_s:g}", step=step)
    if outcome.ended == "badly":
        error = (outcome.noise.strip().splitlines() or ["no message"])[-1]
        return evidence.found(family, "kernel-failed", device=family, step=step, error=error)
    return None


def _judge_kernels(family: str, outcome: Outcome, evidence: Evidence, note: str) -> Finding:
    """Judge a family by the kernels that ran: usable when one device's answers agree, with the first thing wrong."""
    bad = [kernel for kernel in outcome.kernels if "failed" in kernel or "wrong" in kernel]
    good = [kernel["device"] for kernel in outcome.kernels if kernel not in bad]
    if not bad:
        what = f"An addition, a matrix product and a gradient on {', '.join(good)} agree with the CPU's.{note}"
        if family == "cpu":
            what = "An addition, a matrix product and a gradient ran."
        return evidence.found(family, "works", usable=bool(good), what=what)
    first = {"error": "", "kind": "", **bad[0]}
    about, archs = outcome.told.get(first["device"], {}), outcome.told.get("archs", [])
    words = {
        **first,
        "step": first.get("wrong") or first.get("failed"),
        "name": about.get("name", ""),
        "capability": ".".join(map(str, about.get("capability", ["unknown"]))),
        "archs": " ".join(archs),
    }
    return evidence.found(family, _cause(first, evidence.place, about, archs), usable=bool(good), **words)


def _cause(kernel: dict, place: str, about: dict, archs: list[str]) -> str:
    error = kernel["error"]
    if "wrong" in kernel:
        return "wrong-answer"
    if "invalid device function" in error:  # HIP's words for it
        return "amd-card-not-built"
    if "no kernel image" in error:
        return _lacks_kernels(about.get("capability", []), archs)
    if kernel["kind"] == "OutOfMemoryError" or "out of memory" in error:
        # GitHub's virtual Macs list MPS and refuse its first bytes (actions/runner-images 9918 and 11899).
        virtual = kernel["device"] == "mps" and (place == "ci" or "other allocations: 0 bytes" in error)
        return "mps-unavailable" if virtual else "out-of-memory"
    return "kernel-failed"


def _lacks_kernels(capability: list[int], archs: list[str]) -> str:
    """Return whether a card is too old or too new for the architectures of a torch, such as ["sm_90", "sm_120"]."""
    built = [(int(arch[3:-1]), int(arch[-1])) for arch in archs if re.fullmatch(r"sm_\d+", arch)]
    return "card-too-new" if built and tuple(capability) > max(built) else "card-too-old"
