"""The facts that a report lists are those of the evidence, and what is unknown is left out."""

import pytest

from course_tools.doctor.evidence import Evidence
from course_tools.doctor.examine import _facts
from course_tools.doctor.packages import Package
from course_tools.doctor.run_child import Outcome

DRIVER = {"version": "580.65", "cuda": (13, 0), "cards": ({"name": "H200"}, {"name": "T4"})}
SEEN = {"nvidia": Outcome("ok", DRIVER), "nvidia-smi": Outcome("ok", output="two cards")}


@pytest.mark.parametrize(
    ("seen", "facts"),
    [
        ({}, {"inside": "computer", "NVIDIA driver": "none answers"}),
        ({"container": True}, {"inside": "a container, computer", "NVIDIA driver": "none answers"}),
        (
            {"wsl": True, "jetson": "Jetson (R36)", "torch": Package("2.9.0", "13.0")},
            {
                "inside": "WSL, Jetson (R36), computer",
                "torch": "2.9.0, for CUDA 13.0, ROCm None",
                "NVIDIA driver": "none answers",
            },
        ),
        (
            {
                "probes": SEEN,
                "torch_copies": ("/a/torch", "/b/torch"),
                "graphics": [("0x10de", "0x2335"), ("0x1002", "0x744c")],
                "variables": {"CUDA_VISIBLE_DEVICES": "0", "CUDA_HOME": "", "MY_KEY": "secret"},
            },
            {
                "inside": "computer",
                "torch's folders": "/a/torch, /b/torch",
                "NVIDIA driver": "580.65, CUDA 13.0",
                "cards": "H200, T4",
                "PCI": "0x10de 0x2335, 0x1002 0x744c",
                "nvidia-smi": "two cards",
                "CUDA_VISIBLE_DEVICES": "0",
            },
        ),
    ],
)
def test_a_report_lists_what_is_known_of_the_machine_and_nothing_else(seen, facts):
    found = _facts(Evidence(**{"host_kind": "computer", "torch": Package(), "probes": {}} | seen))
    assert "Python 3." in found.pop("system") and found == facts
