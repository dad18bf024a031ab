"""The result of a command, in a terminal and in a pipe."""

import os
import subprocess
import sys

import pytest
from start_python import python

SHOW = "from course_utils.show_result import show_result; show_result('1.5 µs\\n' * 20_000)"


@pytest.mark.process
def test_a_reader_that_has_left_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-c", SHOW]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert done.returncode == 0 and done.stderr == ""


@pytest.mark.process
def test_a_terminal_that_lacks_a_character_shows_its_number():
    done = python("-c", SHOW, PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and done.stdout == "1.5 \\xb5s\n" * 20_000 + "\n"
