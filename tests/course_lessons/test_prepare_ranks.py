"""What a lesson that starts ranks does before its first cell."""

import os
import warnings

import pytest
from course_lessons import prepare_ranks as module


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, f"ignore:{module.OF_TORCH}"),
        ("error", f"error,ignore:{module.OF_TORCH}"),
        (f"ignore:{module.OF_TORCH}", f"ignore:{module.OF_TORCH}"),
    ],
)
def test_the_processes_of_a_lesson_are_quiet_and_its_folder_is_there(
    before, after, tmp_path, monkeypatch
):
    asked = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "what_cells_need", lambda **problems: asked.append([*problems]))
    monkeypatch.delenv("PYTHONWARNINGS", raising=False)
    monkeypatch.setenv("PYTHON_COLORS", "1")
    if before is not None:
        monkeypatch.setenv("PYTHONWARNINGS", before)
    with warnings.catch_warnings():
        for _ in range(2):  # the cell may run twice
            module.prepare_ranks("a/folder")
        warnings.warn(f"{module.OF_TORCH} in a later Python", FutureWarning, stacklevel=1)
    assert (tmp_path / "a/folder").is_dir() and asked == [["ranks", "copies"]] * 2
    assert os.environ["PYTHONWARNINGS"] == after and os.environ["PYTHON_COLORS"] == "0"
