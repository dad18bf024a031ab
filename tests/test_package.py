import subprocess
import sys

import pytest

import course_utils

pytestmark = pytest.mark.process


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
    command = [sys.executable, *options, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def test_importing_the_package_loads_nothing_heavy():
    assert (
        run(f"import course_utils, sys; print([name for name in {HEAVY} if name in sys.modules])")
        == "[]"
    )


def test_a_name_loads_torch_and_nothing_heavier():
    loaded = run(
        "import course_utils, sys; course_utils.time_call\n"
        f"print([m for m in {HEAVY} if m in sys.modules])"
    )
    assert loaded == "['torch']"


def test_the_doctor_starts_without_torch():
    code = "import sys; sys.modules['torch'] = None; import course_utils.doctor\n"
    code += "from course_utils import diagnose"
    run(f"{code}; print(diagnose)")


def test_every_public_name_loads_is_documented_and_is_listed():
    assert set(course_utils.__all__) <= set(dir(course_utils))
    for name in course_utils.__all__:
        assert getattr(course_utils, name).__doc__, f"{name} has no docstring"


def test_a_name_that_is_not_there_is_an_ordinary_error():
    assert not hasattr(course_utils, "no_such_name")
