"""The first sentence of the doctor's report says what was found."""

import sys
from pathlib import Path

import pytest

from course_tools.doctor.causes import find_cause
from course_tools.doctor.diagnosis import Diagnosis
from course_tools.doctor.evidence import Evidence
from course_tools.doctor.packages import Package
from course_tools.doctor.run_child import Outcome
from course_tools.doctor.surroundings import find_copies
from course_utils.kinds import KINDS

TORCH = Package("2.9.0", "13.0")
CPU = Outcome("ok", {}, ({"device": "cpu"},))
GPU = Outcome("ok", {}, ({"device": "cuda:0"},))
NO_GPU = Outcome("ok", {"error": "OSError: libcuda.so.1: cannot open shared object file"})
REHEARSAL = Outcome("ok", {"hardware": "CPU"}, ({"device": "xla:0"},))
OLD_DRIVER = {"error": "The NVIDIA driver on your system is too old (found version 12040)."}
NOT_LOADED = Outcome("ok", {"step": "importing torch", "error": "ImportError: libc10.so"})


def diagnosis(kinds=KINDS, devices=(), copies=(), **probes):
    evidence = Evidence("computer", TORCH, probes, torch_xla=Package("2.9.0"))
    findings = tuple(find_cause(kind, evidence) for kind in kinds)
    return Diagnosis("computer", "torch 2.9.0", devices, findings, 1.0, torch_copies=copies)


NO_CARD = "No GPU or TPU works here: no NVIDIA, AMD or Intel card was found. "
H200 = {"kind": "cuda", "device": "cuda:0", "name": "NVIDIA H200", "memory_bytes": 1, "detail": ""}
K80 = H200 | {"name": "Tesla K80"}
RTX = H200 | {"device": "cuda:1", "name": "RTX 4090"}
NO_KERNEL = "AcceleratorError: CUDA error: no kernel image is available for execution on the device"
FAILED = {"device": "cuda:0", "failed": "an addition", "error": NO_KERNEL}
TWO_CARDS = Outcome("ok", {}, (FAILED, {"device": "cuda:1"}))


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (
            diagnosis(cpu=CPU, cuda=NO_GPU, xla=REHEARSAL),
            NO_CARD + "PyTorch and XLA run on the CPU.",
        ),
        (
            diagnosis(cpu=CPU, cuda=GPU, devices=(H200,)),
            "PyTorch can use cuda:0 (NVIDIA H200) here.",
        ),
        (
            diagnosis(cpu=CPU, cuda=TWO_CARDS, devices=(K80, RTX)),
            "PyTorch can use cuda:1 (RTX 4090) here.",
        ),
        (diagnosis(cpu=NOT_LOADED), "PyTorch does not work here. torch is installed but"),
        (
            diagnosis(cpu=CPU, cuda=Outcome("ok", OLD_DRIVER)),
            "No GPU or TPU works here. The NVIDIA driver supports CUDA 12.4 at most",
        ),
        (
            diagnosis(("cpu", "mps", "cuda"), cpu=CPU, cuda=Outcome("ok", OLD_DRIVER)),
            "No GPU works here. The NVIDIA driver supports CUDA 12.4 at most",
        ),
        (diagnosis(("cpu",), cpu=CPU), "PyTorch runs on the CPU."),
        (diagnosis(("cpu", "xla"), cpu=CPU, xla=REHEARSAL), "PyTorch and XLA run on the CPU."),
        (
            diagnosis(("cuda",), cuda=NO_GPU),
            "No GPU works here. No NVIDIA graphics card was found",
        ),
        (diagnosis(("xla",), xla=REHEARSAL), "No TPU was found here"),
    ],
)
def test_the_verdict_comes_first(found, verdict):
    assert found.verdict.startswith(verdict)
    assert repr(found).replace("\n", " ").startswith(verdict)
    assert "No GPU" not in found.verdict or found.verdict.endswith(".")
    several = len({(one.cause, one.why) for one in found.findings}) > 1
    assert ("kind  works" in repr(found)) == several  # a table where there is more than one cause


def test_of_two_cards_that_fail_the_first_one_names_the_cause():
    wrong = {"device": "cuda:1", "wrong": "a gradient", "difference": "1"}
    for cards, cause in (((FAILED, wrong), "card-too-old"), ((wrong, FAILED), "wrong-answer")):
        found = diagnosis(cpu=CPU, cuda=Outcome("ok", {}, cards)).finding("cuda")
        assert (found.cause, found.usable) == (cause, False)


def test_the_card_of_a_notebook_has_a_row_for_each_cause_with_its_fix():
    html = diagnosis(("cpu", "cuda", "xla"), cpu=CPU, cuda=Outcome("ok", OLD_DRIVER))._repr_html_()
    rows = html.split("<tr")[2:]
    assert len(rows) == 3 and "nothing to do" in rows[0]
    assert "nothing to do" not in rows[1] and "driver" in rows[1]


def test_a_machine_without_torch_xla_misses_nothing():
    evidence = Evidence("computer", TORCH, {"cpu": CPU, "cuda": NO_GPU})
    findings = tuple(find_cause(kind, evidence) for kind in KINDS)
    assert {one.kind: one.cause for one in findings}["xla"] == "torch-xla-absent"
    found = Diagnosis("computer", "torch 2.9.0", (), findings, 1.0)
    assert found.verdict == NO_CARD + "PyTorch runs on the CPU."


def test_a_second_copy_of_torch_is_said(tmp_path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name / "torch").mkdir(parents=True)
        (tmp_path / name / "torch/__init__.py").touch()
    (tmp_path / "torch.py").touch()
    (tmp_path / "link").symlink_to("two")  # as lib64 is to lib: no copy of its own
    folders = [str(tmp_path / name) for name in ("two", "one", "", "two", "link")]
    monkeypatch.setattr(sys, "path", folders)
    copies = find_copies("torch")
    there = [str(tmp_path / place) for place in ("two/torch", "one/torch", "torch.py")]
    assert copies == [str(Path(place).resolve()) for place in there]
    shown = repr(diagnosis(("cpu",), cpu=CPU, copies=tuple(copies)))
    assert all(place in shown for place in there)
    assert f"torch from {copies[0]}, and not from {copies[1]}, " in shown.replace("\n", " ")
    assert " not from " not in repr(diagnosis(("cpu",), cpu=CPU, copies=tuple(copies[:1])))


def test_a_home_folder_that_is_the_root_changes_no_path(monkeypatch):
    """As for a user whom a container does not know."""
    found = diagnosis(("cpu",), cpu=CPU, copies=("/usr/lib/torch", "/opt/torch"))
    monkeypatch.setattr(Path, "home", lambda: Path("/"))
    assert "/usr/lib/torch" in found.to_markdown()
    monkeypatch.setattr(Path, "home", lambda: Path("/opt"))
    assert "~/torch" in found.to_markdown() and "/opt" not in found.to_markdown()
