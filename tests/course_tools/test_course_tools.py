"""What `python -m course_tools` says."""

import importlib.util
import re
from pathlib import Path
from pkgutil import resolve_name

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
    functions = re.findall(r"(?<!-m )\bcourse_\w+(?:\.\w+)+", said)
    assert len(functions) == 2 and all(callable(resolve_name(each)) for each in functions)
