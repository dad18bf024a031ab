"""What a command prints arrives in every terminal, and a reader that has left is no error."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.process


SHOW = [
    sys.executable,
    "-c",
    "from course_utils.text import show_result; show_result('1.5 µs\\n' * 20_000)",
]


def test_a_reader_that_has_left_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(SHOW, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert done.returncode == 0 and done.stderr == ""


def test_a_terminal_that_lacks_a_character_shows_its_number():
    done = subprocess.run(
        SHOW, capture_output=True, text=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert done.returncode == 0 and done.stdout == "1.5 \\xb5s\n" * 20_000 + "\n"


def test_either_package_lists_the_commands_and_each_can_be_run():
    said = []
    for package in ("course_utils", "course_tools"):
        done = subprocess.run([sys.executable, "-m", package], capture_output=True, text=True)
        said.append(done.stdout)
    assert said[0] == said[1]
    commands = re.findall(r"^python -m (\S+)", said[0], re.MULTILINE)
    assert len(commands) >= 4
    assert all(importlib.util.find_spec(f"{command}.__main__") for command in commands)
