"""The causes that the doctor can name, and its verdict on one kind of device."""

from __future__ import annotations

import configparser
import pkgutil
from dataclasses import dataclass
from pathlib import Path

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
