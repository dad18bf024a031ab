"""The collected evidence, and the finding that a cause makes of it."""

from __future__ import annotations

import configparser
import pkgutil
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from course_tools.doctor.packages import Package
from course_tools.doctor.run_child import Outcome
from course_utils.hardware import libpython
from course_utils.hardware.card import Card
from course_utils.tables import clean, wrapped

# What the doctor says of every cause that it can name: `remedies.ini`, one section a cause.
REMEDIES = configparser.ConfigParser(interpolation=None, delimiters="=")
REMEDIES.read_string((pkgutil.get_data("course_tools.doctor", "remedies.ini") or b"").decode())
HOST_NAMES = REMEDIES["hosts"]
IN_A_CLONE = (Path(__file__).parents[2] / "Makefile").exists()
INSTALL = REMEDIES["install"]["course" if IN_A_CLONE else "elsewhere"]
# Patterns of messages of a kernel, a driver or nvidia-smi, and the cause that each names.
MESSAGES = {
    section["message"]: cause for cause, section in REMEDIES.items() if "message" in section
}


@dataclass(frozen=True, repr=False)
class Finding:
    """The doctor's verdict on one kind of device."""

    kind: str  # one of `KINDS`
    usable: bool  # True when a kernel ran on it and its answer agreed with the CPU's
    cause: str  # for scripts, such as "works" or "no-driver": a section of `remedies.ini`
    why: str  # the cause in words, with the evidence for it
    fix: str  # what to do about it, on the host where this runs; "" when there is nothing to do
    devices: tuple[str, ...] = ()  # those whose answer agreed

    @property
    def works(self) -> str:
        """Return "yes", "no" or "not known", for a person."""
        if self.usable:
            return "yes"
        return "not known" if self.cause == "slow" else "no"

    def __repr__(self) -> str:
        return f"{self.kind}: {self.cause}\n{self.advice()}"

    def advice(self) -> str:
        """Return the cause in words and the fix, on lines of their own."""
        lines = {"Why": clean(self.why, 900), "Fix": clean(self.fix, 600)}
        return "\n".join(wrapped(f"{word}: {text}", 2) for word, text in lines.items() if text)


@dataclass(frozen=True)
class Evidence:
    """All that was read from files and variables, and how each child process ended."""

    host_kind: str  # where this runs: a key of [hosts] in `remedies.ini`
    torch: Package
    probes: dict[str, Outcome]
    torch_xla: Package = field(default_factory=Package)
    torch_copies: tuple[str, ...] = ()  # where torch lies, the one that is imported first
    shadows: tuple[str, ...] = ()  # files that Python takes for its own modules
    folder_deleted: bool = False  # the working folder
    variables: dict[str, str] = field(default_factory=dict)
    graphics: list[tuple[str, str]] = field(default_factory=list)  # PCI numbers of vendor and model
    tpu_chips: int = 0
    container: bool = False
    wsl: bool = False  # Linux inside of Windows
    jetson: str = ""  # NVIDIA's board, with its release

    def probe(self, name: str) -> Outcome:
        """Return how one probe ended; a probe that was not started counts as failed."""
        return self.probes.get(name, Outcome("failed"))

    @property
    def cards(self) -> list[Card]:
        """The cards that the NVIDIA driver lists."""
        return [Card(**card) for card in self.probe("nvidia").facts.get("cards", ())]

    @property
    def allocator(self) -> str:
        """The variable with torch's allocator settings, and its value, or ""."""
        names = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
        given = [f"{name}={self.variables[name]}" for name in names if self.variables.get(name)]
        return ", ".join(given)

    def meaning(self, message: str) -> str:
        """Return the cause that a message names on this machine, or "" when it names none."""
        for pattern, cause in MESSAGES.items():
            if re.search(pattern, message):
                # Both makers say both: that the build has no kernels for the card.
                if cause in ("card-too-old", "amd-card-not-built"):
                    return "amd-card-not-built" if self.torch.hip else "card-too-old"
                return cause
        return ""

    def finding(self, kind: str, cause: str, *, usable: bool = False, **words: object) -> Finding:
        """Return the finding of one cause, its braces filled in with `words`, and its fix."""
        section = REMEDIES[cause]
        shared = REMEDIES[section.get("hosts", cause)]  # fixes by host that several causes share
        known = {
            "host": HOST_NAMES[self.host_kind],
            "install": INSTALL,
            "python": sys.executable,
            "version": self.torch.version,
            "xla": self.torch_xla.version,
            "libpython": libpython.PACKAGE,
            "name": "unknown",
            "capability": "unknown",
            "archs": "unknown",
            "step": "unknown",
            **words,
        }
        fix = section["fix"]
        for key in (f"fix.{words.get('maker', kind)}", f"fix.{self.host_kind}"):
            fix = section.get(key) or shared.get(key) or fix
        why, fix = (text.replace("\n", " ").format(**known) for text in (section["why"], fix))
        return Finding(kind, usable, cause, why, fix)
