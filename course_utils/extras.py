"""Add what the lessons lack on this machine, and change nothing that is here: `python -m course_utils.extras`.

A hosted notebook comes with a torch that fits its accelerator, and with a numpy and widgets that fit its own page. So
only what is missing is installed, and torch never. The set-up cell of each lesson calls this; `python -m
course_utils.extras darts` adds Darts for lesson 6 in the same way.

It prints one line, and exits with 0 when nothing is missing any more, with 1 when the course itself is not here as a
whole, and with 2 when something could not be added.
"""

import json
import sys
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from course_utils import __version__
from course_utils.careful_pip import CannotInstall, install, installed, normal

try:
    from packaging.requirements import Requirement
except ImportError:  # it comes with matplotlib and Lightning, and always with pip
    from pip._vendor.packaging.requirements import Requirement

COURSE = "accelerator-course"
# The same Lightning under two names: Kaggle has the second one.
ALSO_CALLED = {"lightning": "pytorch-lightning"}
NOTHING_TO_DO = "The course is here, and nothing is missing."


class Incomplete(Exception):
    """Something is missing, and could not be added; the message is for the reader of a lesson."""


def whole_course() -> metadata.Distribution | None:
    """Return the course as it was installed, or None where it runs from its source and was not installed.

    Raises:
        FileNotFoundError: only a part of the course is here.
    """
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


def asked_for(course: metadata.Distribution, extra: str) -> list[Requirement]:
    """Return what one extra of the course asks for on this machine."""
    lines = [Requirement(line) for line in course.requires or []]
    return [each for each in lines if each.marker and each.marker.evaluate({"extra": extra})]


def version_here(requirement: Requirement, here: dict[str, str]) -> str | None:
    """Return the version of a required package, under either of its names, or None where it is missing."""
    name = normal(requirement.name)
    return here.get(name) or here.get(ALSO_CALLED.get(name, name))


def wheel_folder(course: metadata.Distribution) -> Path | None:
    """Return the folder of the wheel that the course was installed from, or None when it came from elsewhere."""
    origin = json.loads(course.read_text("direct_url.json") or "{}").get("url", "")
    folder = Path(url2pathname(urlsplit(origin).path)).parent
    return folder if origin.startswith("file:") and origin.endswith(".whl") and folder.is_dir() else None


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
    requirements = asked_for(course, extra)
    if not requirements:
        raise Incomplete(f"The course has no extra {extra!r} here. It has lessons, and darts (Python 3.11 or later).")
    missing = [each for each in requirements if version_here(each, here) is None]
    said = add_missing(missing, here, wheel_folder(course)) if missing else NOTHING_TO_DO
    return " ".join([said, *not_tested(course, requirements, here)])


def add_missing(missing: list[Requirement], here: dict[str, str], folder: Path | None) -> str:
    """Install these packages and return a sentence about it, or raise Incomplete."""
    try:
        # Without their markers: these name the extra, and pip would find that it does not apply.
        after = install([f"{each.name}{each.specifier}" for each in missing], folder)
    except CannotInstall as why:
        names = " and ".join(each.name for each in missing)
        raise Incomplete(f"{names} could not be added: {why}. With the internet on, run the cell again.") from why
    names = ", ".join(f"{each.name} {version_here(each, after)}" for each in missing)
    others = len(after) - len(here) - len(missing)
    more = f", and {others} more that they need" if others else ""
    return f"Added {names}{more}. Nothing that was here was changed."


def not_tested(course: metadata.Distribution, requirements: list[Requirement], here: dict[str, str]) -> list[str]:
    """Return a sentence for each package whose version here is not one that the course was tested with."""
    always = [Requirement(line) for line in course.requires or [] if "extra ==" not in line]
    return [
        f"{each.name} {version} is here, and the course was tested with {each.specifier}: it was left as it is."
        for each in [*always, *requirements]
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
