import subprocess
import sys


def test_importing_the_package_loads_torch_and_nothing_heavier():
    heavy = ("torch_xla", "lightning", "pytorch_lightning", "matplotlib", "ipywidgets", "pandas", "IPython", "darts")
    code = f"import course_utils, sys; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_every_public_name_is_there_and_documented():
    import course_utils

    for name in course_utils.__all__:
        assert getattr(course_utils, name).__doc__, f"{name} has no docstring"
