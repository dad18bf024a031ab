"""The fixture in somebody else's test suite."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
#: of a machine with a GPU, as far as the rehearsal looks
CONFTEST = """
import torch
pytest_plugins = ["course_tools.rehearsal.pytest_fixture"]
torch.accelerator.is_available = lambda: True
"""
SUITE = """
import numpy as np
import torch

def test_left_behind(rehearsed_gpu):
    mask = torch.ones(3)
    torch.ones(3, device="cuda") + mask

def test_to_numpy(rehearsed_gpu):
    np.asarray(torch.ones(3, device="cuda"))

def test_moved(rehearsed_gpu):
    assert (torch.ones(3).cuda() * 2).device.type == "cuda"
    assert rehearsed_gpu.report.on_gpu > 0

def test_that_asks_for_no_gpu():
    assert torch.ones(3).device.type == "cpu"
"""


@pytest.mark.process
def test_a_suite_sees_the_error_on_its_own_line_and_no_line_of_the_tool(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "test_theirs.py").write_text(SUITE, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    how = {"cwd": tmp_path, "env": {"PYTHONPATH": str(ROOT)}, "capture_output": True, "text": True}
    done = subprocess.run(command, **how)
    assert done.returncode == 1 and "2 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert '>       torch.ones(3, device="cuda") + mask' in done.stdout
    assert '>       np.asarray(torch.ones(3, device="cuda"))' in done.stdout
    assert "`mask`" in done.stdout and "test_theirs.py:6: mask = torch.ones(3)" in done.stdout
    assert "course_tools" not in done.stdout
