"""What the end of a process means."""

import os
import signal
import time

import pytest

from course_utils.launch.processes import end_group, how_it_ended


@pytest.mark.parametrize("gone", [ProcessLookupError, PermissionError, None])
def test_a_group_has_a_second_to_end_before_it_is_killed(monkeypatch, gone):
    done = []

    def kill(group, number):
        done.append((group, number))
        if gone:
            raise gone

    monkeypatch.setattr(os, "killpg", kill)
    monkeypatch.setattr(time, "sleep", done.append)
    end_group(4711)
    ask, force = (4711, signal.SIGTERM), (4711, signal.SIGKILL)
    assert done == ([ask] if gone else [ask, 1, force])


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "ended with status 0."),
        (2, "ended with status 2."),
        (-40, "was killed by signal 40."),
        (-15, "was killed by SIGTERM."),
        (-9, "was killed by SIGKILL. Often the system has run out of memory: "),
        (-7, "was killed by SIGBUS. Often /dev/shm, "),
    ],
)
def test_the_end_of_a_process_is_a_sentence_with_what_often_causes_it(status, words):
    said = how_it_ended(status)
    assert said == words if words.endswith(".") else said.startswith(words)
