"""What `python -m course_tools` says."""

import importlib.util
import re
from pathlib import Path

import pytest
from start_python import python

import course_tools


@pytest.mark.process
def test_the_commands_are_listed_and_each_can_be_run():
    said = python("-m", "course_tools", fresh=True).stdout
    commands = re.findall(r"^python -m (\S+)", said, re.MULTILINE)
    assert all(importlib.util.find_spec(f"{command}.__main__") for command in commands)
    folders = [file.parent for file in Path(course_tools.__file__).parent.glob("*/__main__.py")]
    assert {f"course_tools.{folder.name}" for folder in folders} <= {*commands}
