"""Files that Python takes for modules of its own are found, and blamed for no other fault."""

import sys

import pytest

from course_tools.doctor import shadows
from course_tools.doctor.causes import find_cause
from course_tools.doctor.evidence import Evidence
from course_tools.doctor.packages import Package
from course_tools.doctor.run_child import Outcome

NOT_IMPORTED = {"step": "importing torch", "error": "ImportError: cannot import name 'Queue'"}
RAN = Outcome("ok", {}, ({"device": "cpu"},))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_files_and_packages_with_the_name_of_a_standard_module_are_found(folder):
    for name in ("queue.py", "train.py", "sys.py", "random.txt", "json"):
        (folder / name).touch()
    for name in ("token", "data"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").touch()
    (folder / "select").mkdir()  # a folder alone hides no module
    # sys is built into Python, which never looks for it in a folder
    assert shadows.find_shadows() == [f"{folder}/queue.py", f"{folder}/token"]


def test_pythons_own_library_stands_in_for_nothing(folder):
    for name in ("os.py", "abc.py", "queue.py"):
        (folder / name).touch()
    assert shadows.find_shadows() == []


def test_the_folder_is_left_only_if_such_a_file_is_in_it(folder, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(folder), "elsewhere"])
    shadows.leave_folder()
    assert sys.path == [str(folder), "elsewhere"]
    (folder / "queue.py").touch()
    monkeypatch.setattr(sys, "path", ["elsewhere", str(folder)])
    shadows.leave_folder()  # another one stands first
    assert sys.path == ["elsewhere", str(folder)]
    monkeypatch.setattr(sys, "path", [str(folder), "elsewhere"])
    shadows.leave_folder()
    assert sys.path == ["elsewhere"]


def test_a_deleted_working_folder_has_no_files(folder):
    folder.rmdir()
    assert shadows.find_shadows() == [] and shadows.working_folder() == ""


@pytest.mark.parametrize(
    ("probe", "cause"),
    [
        (RAN, "works"),
        (Outcome("ok", NOT_IMPORTED), "module-shadowed"),
        (Outcome("failed", output="File '/home/me/queue.py', line 1"), "module-shadowed"),
        (Outcome("ok", {"step": "an addition on cpu", "error": "odd"}), "kernel-failed"),
    ],
)
def test_such_a_file_is_blamed_only_where_torch_was_not_imported(probe, cause):
    files = ("/home/me/calendar.py", "/home/me/queue.py")
    evidence = Evidence("computer", Package("2.9.0"), {"cpu": probe}, shadows=files)
    found = find_cause("cpu", evidence)
    assert found.cause == cause
    assert ("queue.py" in found.why) is (cause == "module-shadowed")
    if probe.output:  # which names the guilty one
        assert "calendar.py" not in found.why


def test_a_kind_that_was_not_tried_is_not_blamed_on_a_file():
    evidence = Evidence("computer", Package("2.9.0"), {}, shadows=("/home/me/queue.py",))
    assert find_cause("mps", evidence).cause == "other-platform"
