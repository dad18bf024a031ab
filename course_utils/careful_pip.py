"""Install packages with pip beside those that are here, and change the version of none of these.

pip gets the exact version of everything that is here as a constraint, and afterwards all of it is looked at again.
"""

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

try:
    from packaging.version import InvalidVersion, Version
except ImportError:  # it comes with matplotlib and Lightning, and always with pip
    from pip._vendor.packaging.version import InvalidVersion, Version

PIP = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", "--prefer-binary"]
NOT_FOUND = "No matching distribution found"


class CannotInstall(Exception):
    """pip could not do it; the message says why, in a few words."""


def normal(name: str) -> str:
    """Return the name of a package in the one spelling that pip compares."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed() -> dict[str, str]:
    """Return the version of every package here, by its name; of two with one name, the one that Python imports."""
    found: dict[str, str] = {}
    for package in metadata.distributions():
        name = package.metadata["Name"]  # None where an installation was broken off
        if name and package.version:
            found.setdefault(normal(name), package.version)
    return found


def pinned(here: dict[str, str]) -> str:
    """Return constraints for pip that allow no other version of anything that is here."""
    lines = []
    for name, version in sorted(here.items()):
        try:
            lines.append(f"{name}=={Version(version)}")
        except InvalidVersion:  # some system packages; pip cannot read those either, and leaves them alone
            continue
    return "\n".join(lines) + "\n"


def install(requirements: list[str], folder: Path | None = None) -> dict[str, str]:
    """Install packages beside those that are here, and return all that is here then, with versions.

    Args:
        requirements: what to install, such as "optree>=0.13".
        folder: where wheels are looked for first; the index is asked when it has not all of them.

    Raises:
        CannotInstall: pip failed, or changed a version all the same.
    """
    before = installed()
    places = [["--no-index", "--find-links", folder], ["--find-links", folder]] if folder else [[]]
    with TemporaryDirectory() as scratch:
        constraints = Path(scratch) / "constraints.txt"
        constraints.write_text(pinned(before), encoding="utf-8")
        for place in places:
            command = [sys.executable, *PIP, "-c", constraints, *place, *requirements]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 0 or "[Errno" in done.stderr:  # with no place to write to, the index is no help
                break
    after = installed()
    if changed := [name for name, version in before.items() if after.get(name) != version]:
        raise CannotInstall(f"pip changed {' and '.join(changed)}, so start a fresh session")
    if done.returncode:
        raise CannotInstall(f"{reason(done.stderr)}. Nothing that was here was changed")
    return after


def reason(stderr: str) -> str:
    """Return the line in which pip says what went wrong, shortened; in plain words where there is no network."""
    errors = [line for line in stderr.splitlines() if re.match(r"error: |ERROR: ", line)]
    last = (errors or stderr.splitlines() or ["pip did not say why"])[-1]
    if "Max retries" in last or (NOT_FOUND in last and "connection broken" in stderr):
        return "there is no way from here to the package index"
    return last.rstrip(".")[:300]
