"""The collected evidence, and what a message or a cause means on the machine that it is of."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field

from course_tools.doctor.finding import HOST_NAMES, INSTALL, MESSAGES, REMEDIES, Finding
from course_tools.doctor.packages import Package
from course_tools.doctor.run_child import Outcome
from course_utils.hardware import libpython
from course_utils.hardware.card import Card


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

    def finding(
        self,
        kind: str,
        cause: str,
        *,
        usable: bool = False,
        fix_for: str = "",
        **words: object,
    ) -> Finding:
        """Return the finding of one cause, its braces filled in with `words`.

        Its fix is that for this host, or else for the case `fix_for` or the kind of device.
        """
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
        for key in (f"fix.{fix_for or kind}", f"fix.{self.host_kind}"):
            fix = section.get(key) or shared.get(key) or fix
        why, fix = (text.replace("\n", " ").format(**known) for text in (section["why"], fix))
        return Finding(kind, usable, cause, why, fix)
