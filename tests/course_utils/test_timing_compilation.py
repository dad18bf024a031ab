"""The timer and XLA's compiler, with XLA's own counters as the oracle."""

from unittest.mock import patch

import pytest
import torch

from course_utils import Device, time_call
from course_utils.timing import Stopwatch
from course_utils.xla import xla_counters

pytestmark = pytest.mark.process


REHEARSAL = Device("xla", 0, "XLA on this CPU", rehearsal=True)


def time_with_a_clock_of_compilations(changes_at: int) -> tuple[float, tuple[float, ...], int, int]:
    """Time a call on a clock that stands still except while XLA compiles, and a millisecond at each
    reading.
    """
    readings = iter(range(10**9))
    calls = []
    data = torch.ones(64, 3 + changes_at).to("xla:0")

    def work():
        calls.append(None)
        return data[: 40 if len(calls) < changes_at else 41].tanh() * 2

    def clock() -> float:
        return next(readings) / 1000 + xla_counters().compile_s

    before = xla_counters()
    with patch.object(Stopwatch, "clock", staticmethod(clock)):
        timing = time_call(work, device=REHEARSAL, max_s=0.5)
    did = xla_counters() - before
    return timing.first_s, timing.blocks_s, did.compilations, did.executions - len(calls)


@pytest.mark.parametrize("changes_at", [2, 3, 8, 10**6])
def test_the_timer_never_counts_compilation_as_run_time(in_xla, changes_at):
    first_s, blocks_s, compilations, extra_executions = in_xla(
        time_with_a_clock_of_compilations, changes_at
    )
    assert first_s > 0.001001 and blocks_s == pytest.approx([0.001] * len(blocks_s))
    assert compilations == (1 if changes_at == 10**6 else 2)
    assert extra_executions == 0  # each call was a program of its own: none was merged with another


def time_what_is_not_returned():
    ones = torch.ones(9).to("xla:0")
    time_call(lambda: [ones + 1].clear(), device=REHEARSAL)


def test_a_call_that_runs_nothing_is_refused(in_xla):
    with pytest.raises(RuntimeError, match=r"calls\. XLA leaves out what nobody holds: return"):
        in_xla(time_what_is_not_returned)


def time_shapes_that_grow(after: int):
    calls = []

    def work():
        calls.append(None)
        return (
            torch.ones(7 if len(calls) < after else len(calls) + 7, 2 + after, device="xla:0") * 2
        )

    time_call(work, device=REHEARSAL)


@pytest.mark.parametrize("after", [0, 12])
def test_a_call_that_never_stops_compiling_is_refused(in_xla, after):
    with pytest.raises(
        RuntimeError,
        match=r"compiled a new program 10 times, so it has no steady state.*pad to one shape",
    ):
        in_xla(time_shapes_that_grow, after)
