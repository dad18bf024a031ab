import pytest
from start_python import python

import course_utils
from course_tools import compare, doctor, estimate, old_code, rehearsal, timeline

FACES = [course_utils, compare, doctor, estimate, old_code, rehearsal, timeline]

HEAVY = ["torch", "torch_xla", "lightning", "pytorch_lightning", "matplotlib", "ipywidgets"]
HEAVY += ["pandas", "IPython", "darts", "torchvision", "PIL", "parso"]
HELP = "runpy.run_module('course_tools.old_code', run_name='__main__')"


@pytest.mark.process
@pytest.mark.parametrize(
    ("code", "loaded"),
    [
        ("import course_utils", []),
        ("import course_utils.launch.__main__", []),
        ("from course_tools.doctor import diagnose", []),
        (f"import runpy; sys.argv = ['', '--help']\ntry: {HELP}\nexcept SystemExit: pass", []),
        ("import course_utils; course_utils.time_call", ["torch"]),
        ("from course_tools.timeline import find_bottleneck", ["torch"]),
        ("from course_tools.estimate import Chip, estimate, estimate_memory", ["torch"]),
    ],
)
def test_an_import_loads_no_more_than_it_needs(code, loaded):
    look = f"print([name for name in {HEAVY} if name in sys.modules])"
    done = python("-c", f"import sys; {code}\n{look}", fresh=True)
    assert (done.stdout.splitlines()[-1:], done.stderr) == ([str(loaded)], "")


@pytest.mark.parametrize("package", FACES)
def test_every_public_name_loads_is_documented_and_is_listed(package):
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        assert getattr(package, name).__doc__, f"{name} has no docstring"


def test_a_name_that_is_not_there_is_an_ordinary_error():
    assert not hasattr(course_utils, "no_such_name")
