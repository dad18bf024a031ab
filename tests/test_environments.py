"""The files that describe an environment agree: pyproject.toml, constraints.txt, conda's, Binder's
and the matrix'.
"""

import ast
import re

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version
from small_machines import ROOT

BINDER, CONDA = ROOT / "binder" / "environment.yml", ROOT / "environment.yml"
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
# conda-forge's name: the name on PyPI
CONDA_NAMES = {"pytorch-cpu": "torch"}


def array(name: str) -> list[Requirement]:
    """Return one list of requirements of pyproject.toml. Python 3.10 has no reader of TOML; this is
    also Python.
    """
    text = re.search(rf"^{name} = (\[.*?\])$", PYPROJECT, re.MULTILINE | re.DOTALL)[1]
    return [Requirement(each) for each in ast.literal_eval(text)]


def conda_packages(path) -> dict[str, SpecifierSet]:
    """Return the packages of an environment file that conda itself installs, with their
    versions.
    """
    lines = re.findall(
        r"^  - ([\w-]+)([<>=!~.,*\d]*)$", path.read_text(encoding="utf-8"), re.MULTILINE
    )
    versions = ((name, re.sub(r"^=(?=\d)(.*)$", r"==\1.*", version)) for name, version in lines)
    return {
        CONDA_NAMES.get(name, name): SpecifierSet(version)
        for name, version in versions
        if name != "conda-forge"
    }


def constraints() -> dict[str, Version]:
    """Return the version of each package that CI runs: a marker leaves out an older Python that has
    no such version.
    """
    lines = map(Requirement, (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines())
    return {
        canonicalize_name(line.name): Version(str(line.specifier).removeprefix("=="))
        for line in lines
    }


def test_binder_has_all_that_the_lessons_need_in_the_same_versions():
    here = conda_packages(BINDER)
    for requirement in [*array("dependencies"), *array("lessons"), *array("lab")]:
        assert here[requirement.name] == requirement.specifier, requirement.name
    assert "torch-xla" not in here and "torch_xla" not in here
    others = here.keys() - {
        each.name for each in [*array("dependencies"), *array("lessons"), *array("lab")]
    }
    assert others == {"python", "pip", "nbval"}
    assert here["nbval"] == next(each.specifier for each in array("test") if each.name == "nbval")


def test_binder_installs_the_package_itself_and_nothing_over_conda():
    lines = (ROOT / "binder" / "postBuild").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "#!/bin/bash" and lines[1] == "set -e"
    assert "python -m pip install --no-deps -e ." in lines
    assert (ROOT / "binder" / "postBuild").stat().st_mode & 0o111


def test_conda_installs_what_make_installs_with_the_same_constraints():
    text = CONDA.read_text(encoding="utf-8")
    pip = re.search(r"^  - pip:\n((?:      - .*\n)+)", text, re.MULTILINE)[1]
    assert re.findall(r"- (.*)", pip) == ["-c constraints.txt", "-e .[all]"]
    assert conda_packages(CONDA).keys() == {"python", "pip"}


@pytest.mark.parametrize("path", [BINDER, CONDA], ids=lambda path: str(path.relative_to(ROOT)))
def test_a_conda_environment_has_a_python_for_which_the_course_is(path):
    python = Version(str(conda_packages(path)["python"]).removeprefix("==").removesuffix(".*"))
    assert python in SpecifierSet(
        re.search(r'^requires-python = "(.*)"', PYPROJECT, re.MULTILINE)[1]
    )
    assert python == Version("3.11"), "constraints.txt holds what CI ran, which is Python 3.11"


def test_every_requirement_is_met_by_the_version_that_ci_runs():
    pinned = constraints()
    for name in ("dependencies", "lessons", "lab", "xla", "darts", "test", "networks", "book"):
        for requirement in array(name):
            version = pinned[canonicalize_name(requirement.name)]
            assert version in requirement.specifier, requirement


def test_no_kernel_is_installed_that_can_miss_a_request():
    kernel = next(each for each in array("lab") if each.name == "ipykernel")  # ipykernel issue 1554
    versions = ["6.31.0", "7.0.0", "7.0.1", "7.1.0", "7.2.0", "7.3.0", "7.4.0"]
    assert list(kernel.specifier.filter(versions)) == ["6.31.0", "7.4.0"]


def test_what_windows_and_macs_cannot_install_is_asked_for_on_linux_alone():
    for name in ("dependencies", "lessons", "lab", "darts", "test", "networks", "book"):
        assert not any(re.match("torch.xla|nvidia|triton", each.name) for each in array(name))
    for system, machine in (("win32", "AMD64"), ("darwin", "arm64")):
        there = {"sys_platform": system, "platform_machine": machine}
        assert not any(each.marker.evaluate(there) for each in array("xla"))


def test_the_oldest_set_of_the_matrix_is_the_oldest_that_is_promised():
    from matrix.run import SETS

    python, packages = SETS["oldest"]
    here = {each.name: each.specifier for each in map(Requirement, packages.split())}
    for requirement in [*array("dependencies"), *array("lessons")]:
        promised = next(each.version for each in requirement.specifier if each.operator == ">=")
        version = str(here[requirement.name]).removeprefix("==")
        assert version == promised or version.startswith(promised + "."), requirement
    assert SpecifierSet(
        re.search(r'^requires-python = "(.*)"', PYPROJECT, re.MULTILINE)[1]
    ).contains(python + ".0")
    assert re.search(rf'requires-python = ">={re.escape(python)},', PYPROJECT)
