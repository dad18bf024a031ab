"""What `python -m course_tools` says."""

import importlib.util
import re

import pytest
from start_python import python


@pytest.mark.process
def test_the_commands_are_listed_and_each_can_be_run():
    said = python("-m", "course_tools", fresh=True).stdout
    commands = re.findall(r"^python -m (\S+)", said, re.MULTILINE)
    assert len(commands) >= 4
    assert all(importlib.util.find_spec(f"{command}.__main__") for command in commands)
