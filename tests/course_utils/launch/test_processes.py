"""What the end of a process means."""

import pytest

from course_utils.launch.processes import how_it_ended


@pytest.mark.parametrize(
    ("status", "words"),
    [
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
