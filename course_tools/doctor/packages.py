"""What was installed, and what it was built for, from its files: an import may be what fails."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

from course_utils.hardware.machine import read_text


@dataclass(frozen=True)
class Package:
    """A distribution as its files describe it, without importing it."""

    version: str = ""  # "" where it is not installed
    cuda: str | None = None
    hip: str | None = None
    xpu: bool = False  # built for Intel's graphics cards
    shadow: str = ""  # the file that Python imports in its place, such as a student's own torch.py

    @property
    def minor(self) -> tuple[int, ...]:
        """The first two parts of the version, such as (2, 9)."""
        return tuple(map(int, re.findall(r"\d+", self.version)[:2]))


def read_package(name: str) -> Package:
    """Read a distribution's version, and what torch was built for, from its files.

    Nothing is imported, since the import may be what fails.
    """
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return Package()
    text = read_text(Path(spec.origin).parent / "version.py")
    lines = re.findall(r"^(__version__|cuda|hip|xpu)\b[^=]*=\s*['\"]([^'\"]+)['\"]", text, re.M)
    values = dict(lines)
    try:
        version = values.get("__version__") or importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        version = "0.0 (unknown)"
    return Package(
        version=version,
        cuda=values.get("cuda"),
        hip=values.get("hip"),
        xpu="xpu" in values or version.endswith("+xpu"),  # torch 2.6 has it in its version only
        shadow="" if "__version__" in values else spec.origin,
    )
