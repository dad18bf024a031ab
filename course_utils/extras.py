"""Add what the lessons lack on this machine, and change nothing that is here: `python -m course_utils.extras`.

A hosted notebook comes with a torch that fits its accelerator, and with a numpy and widgets that fit its own page. So
pip gets the exact version of every package that is here as a constraint, and installs only what is missing. torch
itself is never installed. The set-up cell of each lesson calls this; `python -m course_utils.extras darts` adds Darts
for lesson 6 in the same way.

It prints one line, and exits with 0 when nothing is missing any more, with 1 when the course itself is not here as a
whole, and with 2 when something could not be added.
"""

import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit
from urllib.request import url2pathname

try:
    from packaging.requirements import Requirement
    from packaging.version import InvalidVersion, Version
except ImportError:  # it comes with matplotlib and Lightning, and always with pip
    from pip._vendor.packaging.requirements import Requirement
    from pip._vendor.packaging.version import InvalidVersion, Version

COURSE = "accelerator-course"
# The same Lightning under two names: Kaggle has the second one.
ALSO_CALLED = {"lightning": "pytorch-lightning"}
NOTHING_TO_DO = "The course is here, and nothing is missing."
NOT_FOUND = "No matching distribution found"


class Incomplete(Exception):
    """Something is missing, and could not be added; the message is for the reader of a lesson."""


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


def whole_course() -> metadata.Distribution | None:
    """Return the course as it was installed, or None where it runs from its source and was not installed.

    Raises:
        FileNotFoundError: only a part of the course is here.
    """
    from course_utils import __version__

    home = Path(__file__).resolve().parent.parent
    courses = [course for course in metadata.distributions(name=COURSE) if course.version == __version__]
    if not courses and (home / "pyproject.toml").exists():
        return None
    if not courses or courses[0].files is None:
        raise FileNotFoundError(f"The course in {home} was not installed to its end.")
    for file in courses[0].files:
        if file.suffix != ".pyc" and not file.locate().exists():
            raise FileNotFoundError(f"The course is here without its file {file}.")
    return courses[0]


def wanted(course: metadata.Distribution, extra: str) -> list[Requirement]:
    """Return what one extra of the course asks for on this machine."""
    asked = [Requirement(line) for line in course.requires or []]
    return [each for each in asked if each.marker and each.marker.evaluate({"extra": extra})]


def version_here(requirement: Requirement, here: dict[str, str]) -> str | None:
    """Return the version of a required package, under either of its names, or None where it is missing."""
    name = normal(requirement.name)
    return here.get(name) or here.get(ALSO_CALLED.get(name, name))


def pinned(here: dict[str, str]) -> str:
    """Return constraints for pip that allow no other version of anything that is here."""
    lines = []
    for name, version in sorted(here.items()):
        try:
            lines.append(f"{name}=={Version(version)}")
        except InvalidVersion:  # some system packages; pip cannot read those either, and leaves them alone
            continue
    return "\n".join(lines) + "\n"


def wheel_folder(course: metadata.Distribution) -> Path | None:
    """Return the folder of the wheel that the course was installed from, or None when it came from elsewhere."""
    origin = json.loads(course.read_text("direct_url.json") or "{}").get("url", "")
    folder = Path(url2pathname(urlsplit(origin).path)).parent
    return folder if origin.startswith("file:") and origin.endswith(".whl") and folder.is_dir() else None


def pip_install(missing: list[Requirement], here: dict[str, str], folder: Path | None) -> None:
    """Install what is missing, from the folder of wheels if there is one that has it, else from the index.

    Raises:
        Incomplete: pip could not do it.
    """
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1"]
    places = [["--no-index", "--find-links", folder], ["--find-links", folder]] if folder else [[]]
    with TemporaryDirectory() as scratch:
        constraints = Path(scratch) / "constraints.txt"
        constraints.write_text(pinned(here), encoding="utf-8")
        for place in places:
            # Without their markers: these name the extra, and pip would find that it does not apply.
            names = [f"{each.name}{each.specifier}" for each in missing]
            command = [*pip, "--prefer-binary", "-c", constraints, *place, *names]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 0:
                return
            if NOT_FOUND not in done.stderr:
                break  # the index would not help either
    names = " and ".join(each.name for each in missing)
    why = f"{names} could not be added: {reason(done.stderr)}."
    raise Incomplete(f"{why} Nothing that was here was changed. With the internet on, run the cell again.")


def reason(stderr: str) -> str:
    """Return the line in which pip says what went wrong, shortened; in plain words where there is no network."""
    errors = [line for line in stderr.splitlines() if re.match(r"error: |ERROR: ", line)]
    last = (errors or stderr.splitlines() or ["pip did not say why"])[-1]
    if "Max retries" in last or (NOT_FOUND in last and "connection broken" in stderr):
        return "there is no way from here to the package index"
    return last.rstrip(".")[:300]


def changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Return the names of packages that were here and are not here any more in that version."""
    return [name for name, version in before.items() if after.get(name) != version]


def add(extra: str) -> str:
    """Install what one extra of the course lacks here, and return one line that says what was done.

    Raises:
        FileNotFoundError: only a part of the course is here.
        Incomplete: something is missing and could not be added.
    """
    course, here = whole_course(), installed()
    if course is None:
        return NOTHING_TO_DO
    if "torch" not in here:
        raise Incomplete("PyTorch is not installed here, and this set-up never installs it: see pytorch.org.")
    everything = wanted(course, extra)
    if not everything:
        raise Incomplete(
            f"The course has nothing called {extra!r} to add here. It has lessons, and darts (Python 3.11+)."
        )
    missing = [each for each in everything if version_here(each, here) is None]
    if missing:
        pip_install(missing, here, wheel_folder(course))
    return " ".join([summary(missing, here), *too_old(course, everything, here)])


def summary(missing: list[Requirement], before: dict[str, str]) -> str:
    """Return what was added, having checked that nothing else was changed."""
    if not missing:
        return NOTHING_TO_DO
    after = installed()
    if broken := changed(before, after):
        raise Incomplete(f"pip changed {' and '.join(broken)}, which it must not. Start a fresh session.")
    names = [f"{each.name} {version_here(each, after)}" for each in missing]
    others = len(after) - len(before) - len(missing)
    more = f", and {others} more that they need" if others else ""
    return f"Added {', '.join(names)}{more}. Nothing that was here was changed."


def too_old(course: metadata.Distribution, everything: list[Requirement], here: dict[str, str]) -> list[str]:
    """Return a sentence for each package whose version here is not one that the course was tested with."""
    needed = [*(Requirement(line) for line in course.requires or [] if "extra ==" not in line), *everything]
    return [
        f"{each.name} {version} is here, and the course was tested with {each.specifier}: it was left as it is."
        for each in needed
        if (version := version_here(each, here)) and not each.specifier.contains(version, prereleases=True)
    ]


def main(extra: str = "lessons") -> int:
    """Add one extra, print one line about it, and return the exit status that the top of this file explains."""
    try:
        print(add(extra))
    except FileNotFoundError as error:
        print(error)
        return 1
    except Incomplete as error:
        print(error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
