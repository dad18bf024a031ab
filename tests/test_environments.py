"""The files that describe an environment agree: pyproject.toml, constraints.txt, two of conda."""

import re
import shlex
import tomllib

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version
from small_machines import ROOT

from tools import install

BINDER, CONDA = ROOT / "binder" / "environment.yml", ROOT / "environment.yml"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# the versions of each package that CI runs: more than one where they depend on Python
PINNED: dict[str, list[Version]] = {}
for _line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
    _pin = Requirement(_line)
    _version = Version(str(_pin.specifier).removeprefix("=="))
    PINNED.setdefault(canonicalize_name(_pin.name), []).append(_version)


def array(name: str) -> list[Requirement]:
    """Return one list of requirements of pyproject.toml."""
    optional = PROJECT["optional-dependencies"]
    return [Requirement(each) for each in optional.get(name, PROJECT["dependencies"])]


def conda_packages(path) -> dict[str, SpecifierSet]:
    """Return the packages of an environment file that conda itself installs, with their
    versions.
    """
    lines = re.findall(
        r"^  - ([\w-]+)([<>=!~.,*\d]*)$", path.read_text(encoding="utf-8"), re.MULTILINE
    )
    versions = ((name, re.sub(r"^=(?=\d)(.*)$", r"==\1.*", version)) for name, version in lines)
    return {name: SpecifierSet(version) for name, version in versions if name != "conda-forge"}


def test_binder_installs_what_the_lessons_need_with_the_same_constraints():
    assert conda_packages(BINDER) == conda_packages(CONDA)
    script = BINDER.with_name("postBuild")
    lines = script.read_text(encoding="utf-8").replace("\\\n", "").splitlines()
    assert lines[0] == "#!/bin/bash" and "set -e" in lines and script.stat().st_mode & 0o111
    *_, uv, course, _, quiet, _, copies = (shlex.split(line) for line in lines)
    assert quiet[:2] == ["python", "-c"] and "quiet_lab(sys.prefix)" in quiet[2]
    assert copies == ["python", "tools/copies.py", "my-lessons"]  # as make lab calls it
    assert uv[-1] == install.UV
    assert "--torch-backend=cpu" in course and "-c constraints.txt" in " ".join(course)
    assert course[course.index("--python") + 1] == "$(command -v python)"  # and no other Python
    assert course[-4:] == ["-e", ".[lessons]", "jupyterlab", "ipykernel"]
    assert {"jupyterlab", "ipykernel"} <= PINNED.keys()


def test_conda_installs_what_make_installs_with_the_same_constraints():
    text = CONDA.read_text(encoding="utf-8")
    pip = re.search(r"^  - pip:\n((?:      - .*\n)+)", text, re.MULTILINE)[1]
    assert re.findall(r"- (.*)", pip) == ["-c constraints.txt", "-e .[learn]"]
    assert conda_packages(CONDA).keys() == {"python", "pip"}


def test_every_requirement_is_met_by_the_versions_that_ci_runs():
    for name in ("dependencies", "lessons", "darts", "learn", "test", "networks"):
        for requirement in array(name):
            if requirement.name == "accelerator-course":
                continue
            versions = PINNED[canonicalize_name(requirement.name)]
            assert all(version in requirement.specifier for version in versions), requirement


def test_no_lightning_is_allowed_that_runs_the_code_in_a_checkpoint():
    # Tried with a forged one: fit(ckpt_path=...) of 2.4.0 and of 2.5.6 runs it, 2.6.0 refuses.
    for requirement in (*array("lessons"), *array("darts")):
        if requirement.name in ("lightning", "pytorch-lightning"):
            assert not {"2.4.0", "2.5.6"} & set(requirement.specifier.filter(["2.4.0", "2.5.6"]))
            assert "2.6.0" in requirement.specifier
