"""Trainings by name and from files."""

import sys

import pytest

from course_utils.launch.request import LaunchError
from course_utils.launch.trainings import check_training, load_training

SOURCE = """
raise RuntimeError("this file was run")

def make():
    pass
"""
RETURNS = """
def make():
    from course_lessons.air_rnn import air_rnn
    module, loader = air_rnn()
    return {}
"""


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Write a file and return its name as a lesson; the search path is restored afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(name, source):
        (tmp_path / name).write_text(source)
        monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
        return f"{tmp_path / name}:make"

    return write


def test_the_built_in_training_shares_its_samples_evenly():
    module, loader = load_training("course_lessons.air_rnn:air_rnn")
    assert sum(parameter.numel() for parameter in module.parameters()) == 481
    assert all(len(loader.dataset) % ranks == 0 for ranks in (1, 2, 3, 4, 6, 8))


def test_a_file_is_checked_without_running_it(written):
    check_training(written("launch_checked.py", SOURCE))


def test_a_file_without_the_function_is_refused(written):
    with pytest.raises(LaunchError, match="no function 'make'"):
        load_training(written("launch_other.py", "def other(): pass"))


def test_a_module_and_its_loader_are_returned(written):
    module, loader = load_training(written("launch_right.py", RETURNS.format("module, loader")))
    assert type(module).__name__ == "Regression" and loader.batch_size == 16


@pytest.mark.parametrize("returned", ["module", "loader, module", "module, loader.dataset"])
def test_anything_else_is_refused_with_what_was_returned(written, returned):
    with pytest.raises(LaunchError, match="not a LightningModule and its DataLoader"):
        load_training(written("launch_wrong.py", RETURNS.format(returned)))
