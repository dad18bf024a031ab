"""The watch for the first touch of CUDA, on a stub driver where this machine has none."""

import os
import subprocess
import sys

import pytest
import torch
from stand_ins import REPOSITORY, needs_cuda_build, needs_gcc, needs_linux, stub_driver

from course_utils.lessons.start import CudaWatch, is_cuda_initialized

pytestmark = needs_linux


@pytest.fixture
def run(tmp_path):
    """Run a script in a new Python on the stub driver and return what it printed."""
    variables = stub_driver(tmp_path / "driver")
    (tmp_path / "greedy.py").write_text("import torch\n\nweights = torch.zeros(3).to('cuda')\n")

    def run_script(code: str) -> str:
        (tmp_path / "script.py").write_text("from course_utils.lessons.start import CudaWatch\n" + code)
        environment = {**os.environ, **variables, "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{tmp_path}"}
        command = [sys.executable, tmp_path / "script.py"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run_script


@needs_gcc
@needs_cuda_build
def test_in_a_script_the_watched_code_is_named(run):
    said = run("watch = CudaWatch().start()\nimport greedy\nprint(watch)\n")
    assert said.startswith("CUDA was initialized by the watched code (an import can do that")


@needs_gcc
@needs_cuda_build
def test_the_notebook_cell_that_initialized_cuda_is_named(run):
    """The cells run in IPython's own shell, as a kernel runs them."""
    said = run(
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "for cell in ['from course_utils.lessons.start import CudaWatch',\n"
        "             'watch = CudaWatch().start()', '1 + 1',\n"
        "             'import torch\\nx = torch.ones(2).to(\"cuda\")', 'print(watch)']:\n"
        "    shell.run_cell(cell, store_history=True)\n"
    )
    assert "by cell In [4] (" in said


@needs_gcc
@needs_cuda_build
def test_a_start_behind_torchs_back_is_traced_to_its_cell(run):
    """torch.cuda.is_available() starts the driver without initializing torch's CUDA: enough to spoil a fork."""
    said = run(
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "for cell in ['from course_utils.lessons.start import CudaWatch; import torch',\n"
        "             'watch = CudaWatch().start()',\n"
        "             'torch.cuda.is_available()', '1 + 1', 'print(torch.cuda.is_initialized(), watch)']:\n"
        "    shell.run_cell(cell, store_history=True)\n"
    )
    assert "False CUDA was initialized by cell In [3] (" in said


@needs_gcc
@needs_cuda_build
def test_what_happened_before_the_watch_is_not_blamed_on_anyone(run):
    said = run("import greedy\nlate = CudaWatch().start()\nprint(late)\n")
    assert said.startswith("CUDA was initialized by something before the watch began")


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_without_cuda_nothing_has_initialized_it():
    watch = CudaWatch().start()
    with pytest.raises((RuntimeError, AssertionError), match=r"NVIDIA driver|not compiled"):
        torch.zeros(1).to("cuda")
    assert watch.first_touch is None and not is_cuda_initialized()
    assert repr(watch) == "Nothing has initialized CUDA in this process."
