"""Where the program is."""

import dataclasses
import functools
import sys

import torch

from course_tools.rehearsal.lines import frame_at
from course_tools.rehearsal.rehearse import rehearse


def test_a_thread_that_has_fewer_calls_than_asked_for_gives_its_outermost():
    assert frame_at(0) is sys._getframe() and frame_at(1) is sys._getframe(1)
    assert frame_at(10**6).f_back is None


@dataclasses.dataclass
class Running:
    mean: torch.Tensor = dataclasses.field(
        default_factory=functools.partial(torch.ones, 256, device="cuda")
    )


def test_code_that_a_package_wrote_is_no_line_of_the_program():
    with rehearse("cuda") as rehearsal:
        held = Running()
        report = str(rehearsal.report)
    assert held.mean.nbytes == 1024 and "<string>" not in report
    assert "test_lines.py:27: held = Running()" in report, report
