"""What a command prints arrives in every terminal, and a reader that has left is no error."""

import os
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
