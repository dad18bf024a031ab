"""A kind of device that `torch.accelerator` knows is one more name in KINDS, and nothing else."""

import os
import subprocess
import sys

import pytest
from stand_ins import FOREIGN, REPOSITORY, needs_no_gpu, stub_package

from course_tools.doctor.causes import find_cause
from course_tools.doctor.evidence import Evidence
from course_tools.doctor.run_child import Outcome
from course_utils.hardware.machine import Package

# A backend that loads itself with torch and has two devices, but no kernels.
BACKEND = """
import torch

class Module:
    is_available = staticmethod(lambda: True)
    is_initialized = staticmethod(lambda: True)
    device_count = staticmethod(lambda: 2)
    current_device = staticmethod(lambda: 0)

def start():
    torch.utils.rename_privateuse1_backend("npu")
    torch._register_device_module("npu", Module)
    torch._C._accelerator_getAccelerator = lambda: torch.device("npu")
    torch.accelerator.device_count = lambda: 2
"""
ADDED = """
from course_utils import hardware
hardware.KINDS += ("npu",)
from course_tools import diagnose
from course_utils import find_devices, pick_device
print([str(device) for device in find_devices() if device.kind in ("npu", "cpu")])
print(diagnose(("npu",)).finding("npu"))
print(pick_device("npu:1").name)
"""
RAN = Outcome("ok", {}, ({"device": "npu:0"},))


def run_added(path=""):
    variables = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    variables["PYTHONPATH"] = os.pathsep.join([str(path), str(REPOSITORY)])
    command = [sys.executable, "-c", ADDED]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=180)


@pytest.mark.process
@needs_no_gpu
def test_an_added_kind_is_found_chosen_and_examined(tmp_path):
    entry = "[torch.backends]\nstub = torch_stub:start\n"
    done = run_added(stub_package(tmp_path, "torch_stub", "1.0", BACKEND, entry_points=entry))
    found, *finding, name = done.stdout.splitlines() or [done.stderr]
    assert found == "['npu:0', 'npu:1', 'cpu']"
    assert finding[0] == "npu: kernel-failed" and "npu:0 was found, but a copy" in finding[1]
    assert name == "npu device"


@pytest.mark.process
def test_an_added_kind_that_is_not_here_is_said_to_be_missing():
    done = run_added()
    assert "npu: no-hardware" in done.stdout and "No npu device" in done.stdout
    assert "device 'npu:1' was requested, but this machine has cpu" in done.stderr


def test_an_added_kind_works_when_its_kernels_agree_with_the_cpu():
    evidence = Evidence("computer", Package("2.9.0"), {"npu": RAN})
    found = find_cause("npu", evidence)
    assert (found.cause, found.usable) == ("works", True) and "npu:0" in found.why
