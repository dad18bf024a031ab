"""Where the program is."""

import sys

from course_tools.rehearsal.lines import frame_at


def test_a_thread_that_has_fewer_calls_than_asked_for_gives_its_outermost():
    assert frame_at(0) is sys._getframe() and frame_at(1) is sys._getframe(1)
    assert frame_at(10**6).f_back is None
