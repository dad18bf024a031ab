from importlib import metadata

import pytest

from course_utils import extras


class Course:
    """A course that asks for what the test says."""

    version = "0"

    def __init__(self, *requires):
        self.requires = list(requires)

    def read_text(self, name):
        return None


def add(monkeypatch, here: dict, *requires: str, extra: str = "lessons", new: dict | None = None) -> tuple[str, list]:
    """Return what `add` says on a machine with these packages, and what it asked pip for."""
    asked = []
    monkeypatch.setattr(extras, "whole_course", lambda: Course(*requires))
    monkeypatch.setattr(extras, "installed", lambda: here)
    monkeypatch.setattr(extras, "install", lambda names, folder: asked.extend(names) or {**here, **(new or {})})
    return extras.add(extra), asked


def test_without_torch_nothing_is_installed(monkeypatch):
    with pytest.raises(extras.Incomplete, match=r"PyTorch is not installed here, and this set-up never installs it"):
        add(monkeypatch, {"numpy": "2.1.3"}, "lightning>=2.4; extra == 'lessons'")


def test_only_what_is_missing_from_the_extra_is_asked_for(monkeypatch):
    said, asked = add(
        monkeypatch,
        {"torch": "2.9.0", "numpy": "2.1.3"},
        "torch>=2.6",
        "numpy>=1.26; extra == 'lessons'",
        "optree>=0.13; extra == 'lessons'",
        "winonly; sys_platform == 'nowhere' and extra == 'lessons'",
        "darts>=0.48; extra == 'darts'",
        new={"optree": "0.20.0"},
    )
    assert asked == ["optree>=0.13"]
    assert said == "Added optree 0.20.0. Nothing that was here was changed."


def test_another_extra_is_added_by_its_name_and_an_unknown_one_is_refused(monkeypatch):
    _, asked = add(monkeypatch, {"torch": "2.9.0"}, "a; extra == 'darts'", extra="darts", new={"a": "1"})
    assert asked == ["a"]
    with pytest.raises(extras.Incomplete, match=r"no extra 'dart' here. It has lessons, and darts"):
        add(monkeypatch, {"torch": "2.9.0"}, "a; extra == 'darts'", extra="dart")


def test_a_version_that_was_not_tested_is_named_and_left_alone(monkeypatch):
    here = {"torch": "2.5.1", "pandas": "2.1.0"}
    said, asked = add(monkeypatch, here, "torch>=2.6", "pandas>=2.2; extra == 'lessons'")
    assert asked == []
    assert "torch 2.5.1 is here, and the course was tested with >=2.6: it was left as it is." in said
    assert "pandas 2.1.0 is here, and the course was tested with >=2.2: it was left as it is." in said


def test_a_build_of_torch_from_the_night_is_not_called_too_old(monkeypatch):
    said, _ = add(monkeypatch, {"torch": "2.13.0.dev20260101+cpu"}, "torch>=2.6", "torch; extra == 'lessons'")
    assert said == extras.NOTHING_TO_DO


@pytest.mark.parametrize(("error", "status"), [(FileNotFoundError("half"), 1), (extras.Incomplete("why"), 2)])
def test_the_exit_status_tells_a_broken_course_from_a_missing_package(monkeypatch, capsys, error, status):
    def fail(extra):
        raise error

    monkeypatch.setattr(extras, "add", fail)
    assert extras.main() == status
    assert capsys.readouterr().out == f"{error}\n"


def test_this_installation_of_the_course_is_whole():
    course = extras.whole_course()
    assert course is None or course.version == metadata.version("accelerator-course")
