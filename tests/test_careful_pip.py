import subprocess
import zipfile

import pytest
from small_machines import write_wheel

from course_utils import careful_pip


def answer(monkeypatch, *states: dict, status: int = 0, stderr: str = "") -> list:
    """Let pip answer so, with these packages here before and after; return the list of what it is asked."""
    asked, left = [], list(states)

    def run(command, **options):
        asked.append([str(word) for word in command])
        return subprocess.CompletedProcess(command, status, "", stderr)

    monkeypatch.setattr(careful_pip, "installed", lambda: left.pop(0))
    monkeypatch.setattr(careful_pip.subprocess, "run", run)
    return asked


@pytest.mark.parametrize("status", [0, 1])
def test_a_change_that_pip_made_all_the_same_is_not_kept_quiet(monkeypatch, status):
    answer(monkeypatch, {"torch": "2.9.0"}, {"torch": "2.10.0", "a": "1"}, status=status)
    with pytest.raises(careful_pip.CannotInstall, match=r"^pip changed torch, so start a fresh session$"):
        careful_pip.install(["a"])


def test_a_failure_says_why_and_that_nothing_was_changed(monkeypatch):
    here = {"torch": "2.9.0"}
    answer(monkeypatch, here, here, status=1, stderr="ERROR: ResolutionImpossible: for help")
    with pytest.raises(careful_pip.CannotInstall, match=r"ResolutionImpossible.*\. Nothing that was here was changed$"):
        careful_pip.install(["a"])


def test_a_folder_of_wheels_comes_before_the_index(monkeypatch, tmp_path):
    here = {"torch": "2.9.0"}
    asked = answer(monkeypatch, here, here, status=1, stderr="ERROR: No matching distribution found for a")
    with pytest.raises(careful_pip.CannotInstall):
        careful_pip.install(["a"], tmp_path)
    assert [("--no-index" in words, str(tmp_path) in words) for words in asked] == [(True, True), (False, True)]


def test_constraints_name_every_package_once_and_leave_out_what_pip_cannot_read():
    here = {"torch": "2.11.0+cu128", "debian-thing": "0.1.43ubuntu-x1", "numpy": "2.1.3"}
    assert careful_pip.pinned(here).splitlines() == ["numpy==2.1.3", "torch==2.11.0+cu128"]


def test_of_two_packages_with_one_name_the_one_that_python_imports_counts(tmp_path, monkeypatch):
    for version in ("1.0", "2.0"):
        with zipfile.ZipFile(write_wheel(tmp_path, "Twin.Package", version)) as archive:
            archive.extractall(tmp_path / version)
    monkeypatch.syspath_prepend(str(tmp_path / "1.0"))
    monkeypatch.syspath_prepend(str(tmp_path / "2.0"))
    assert careful_pip.installed()["twin-package"] == "2.0"


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        ("WARNING: x\nERROR: ResolutionImpossible: for help\nhint", "ERROR: ResolutionImpossible: for help"),
        ("error: externally-managed-environment\n\nhint: see PEP 668", "error: externally-managed-environment"),
        ("after connection broken by 'X'\nERROR: No matching distribution found for a", "there is no way from here to"),
        ("after connection broken by 'X'\nERROR: [Errno 13] Permission denied: 'x'", "ERROR: [Errno 13] Permission"),
        ("ERROR: No matching distribution found for a>=9", "ERROR: No matching distribution found for a>=9"),
        ("/usr/bin/python: No module named pip", "No module named pip"),
        ("", "pip did not say why"),
    ],
)
def test_of_all_that_pip_prints_the_reason_is_passed_on(stderr, said):
    assert said in careful_pip.reason(stderr)
