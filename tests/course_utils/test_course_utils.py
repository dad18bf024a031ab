import pytest
from start_python import python

import course_tools
import course_utils

HEAVY = (
    "torch",
    "torch_xla",
    "lightning",
    "pytorch_lightning",
    "matplotlib",
    "ipywidgets",
    "pandas",
    "IPython",
    "darts",
)


def run(code: str, *options: str) -> str:
    done = python(*options, "-c", code, fresh=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.mark.process
def test_importing_the_package_loads_nothing_heavy():
    assert (
        run(f"import course_utils, sys; print([name for name in {HEAVY} if name in sys.modules])")
        == "[]"
    )


@pytest.mark.process
def test_a_name_loads_torch_and_nothing_heavier():
    loaded = run(
        "import course_utils, sys; course_utils.time_call\n"
        f"print([m for m in {HEAVY} if m in sys.modules])"
    )
    assert loaded == "['torch']"


@pytest.mark.process
def test_the_doctor_starts_without_torch():
    code = "import sys; sys.modules['torch'] = None; import course_tools.doctor\n"
    code += "from course_tools import diagnose"
    run(f"{code}; print(diagnose)")


@pytest.mark.parametrize("package", [course_utils, course_tools])
def test_every_public_name_loads_is_documented_and_is_listed(package):
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        assert getattr(package, name).__doc__, f"{name} has no docstring"


def test_a_name_that_is_not_there_is_an_ordinary_error():
    assert not hasattr(course_utils, "no_such_name")
