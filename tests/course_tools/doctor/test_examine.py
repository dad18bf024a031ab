"""The facts that a report lists are those of the evidence, and what is unknown is left out."""

import sys

import pytest

from course_tools.doctor import examine
from course_tools.doctor.evidence import Evidence
from course_tools.doctor.examine import _facts
from course_tools.doctor.packages import Package
from course_tools.doctor.run_child import Outcome
from course_utils.kinds import KINDS

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


@pytest.mark.parametrize(
    ("system", "torch", "torch_xla", "tried"),
    [
        ("Linux", Package("2.9.0"), Package(), ["cpu", "cuda"]),
        ("Darwin", Package("2.9.0"), Package(), ["cpu", "cuda", "mps"]),
        ("Linux", Package("2.9.0", xpu=True), Package("2.9.0"), ["cpu", "cuda", "xpu", "xla"]),
        ("Linux", Package(), Package("2.9.0"), []),
    ],
)
def test_what_cannot_be_here_is_not_tried(system, torch, torch_xla, tried, monkeypatch, tmp_path):
    asked, path = {}, sys.path[:]
    packages = {"torch": torch, "torch_xla": torch_xla}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        examine, "read_package", lambda name: asked.update(first=sys.path[0]) or packages[name]
    )
    monkeypatch.setattr(examine, "run_all", lambda *given: asked.update(given=given) or {})
    monkeypatch.setattr(examine.platform, "system", lambda: system)
    monkeypatch.setattr(examine.machine, "tpu_chips", lambda: ["a chip"] * 4)
    found = examine._examine(tuple(KINDS), 7.0)
    commands, limit_s = asked["given"]
    assert sorted(commands) == sorted(["nvidia", *tried, "nvidia-smi"]) and limit_s == 7
    assert found.tpu_chips == 4 and not found.folder_deleted
    # packages are looked for where a program in this folder would find them
    assert asked["first"] == str(tmp_path) and sys.path == path


def test_forty_seconds_are_the_limit_of_a_child_unless_another_is_asked_for(monkeypatch):
    limits = []
    evidence = Evidence("computer", Package(), {})
    monkeypatch.setattr(
        examine, "_examine", lambda kinds, limit_s: limits.append(limit_s) or evidence
    )
    examine.diagnose()
    found = examine.diagnose(("cpu",), limit_s=3)
    assert limits == [40, 3] and 0 <= found.seconds < 3600
