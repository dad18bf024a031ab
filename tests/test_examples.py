"""The examples in docstrings run, and every public function has one."""

import doctest
import importlib
import pkgutil
from types import ModuleType

import pytest

import course_tools
import course_utils
from course_tools import compare, doctor, old_code, rehearsal, timeline

PACKAGES = (course_utils, course_tools)
FACES = (course_utils, compare, doctor, old_code, rehearsal, timeline)
STARTS_PROCESSES = "course_utils.launch.parent"
# An example of these would examine the whole machine, start XLA in the tests' own process, or read
# a trace that is not there.
WITHOUT = {"diagnose", "start_xla", "xla_counters", "xla_problem", "bottleneck_of"}


def modules_with_examples() -> list[str]:
    """Return the name of each module whose source has an example."""
    found = []
    for package in PACKAGES:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            loader = module.module_finder.find_spec(module.name, None).loader
            if ">>> " in (loader.get_source(module.name) or ""):
                found.append(module.name)
    return found


def public_functions(package: ModuleType) -> list[str]:
    """Return the names of the public functions that should have an example."""
    return [name for name in package.__all__ if name.islower() and name not in WITHOUT]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.process] if name == STARTS_PROCESSES else [])
        for name in modules_with_examples()
    ],
)
def test_the_examples_of_a_module_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where an example may leave files
    # which the launcher's example trains
    (tmp_path / "my_training.py").write_text(
        "from course_lessons.sample_training import air_rnn as make"
    )
    # an example may break its lines where it likes, and leave out what varies as "..."
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    done = doctest.testmod(importlib.import_module(name), optionflags=flags)
    assert done.attempted and not done.failed


@pytest.mark.parametrize("package", FACES, ids=lambda package: package.__name__)
def test_every_public_function_has_an_example(package):
    functions = {name: getattr(package, name) for name in public_functions(package)}
    assert [name for name, each in functions.items() if ">>> " not in (each.__doc__ or "")] == []
