"""Why a run failed, in a sentence, and tracebacks that a student can read."""

import os
import signal
import time
import traceback
from pathlib import Path

import pytest

from course_utils.launch.causes import (
    Fault,
    Heartbeat,
    describe_death,
    describe_faults,
    describe_silence,
)
from course_utils.launch.messages import short_traceback

pytestmark = pytest.mark.process


def test_the_first_fault_is_the_cause_and_the_others_follow_from_it():
    faults = [
        Fault("rank 2", "KeyError: 'x'", ""),
        Fault("rank 0", "RuntimeError: Connection closed", ""),
        Fault("rank 2", "again", ""),
    ]
    assert describe_faults(faults) == (
        "rank 2 raised KeyError: 'x'. Then rank 0 failed, most likely because of it: RuntimeError: Connection closed"
    )


def test_a_kill_is_named_with_its_signal_and_what_to_try():
    text = describe_death("rank 1", -signal.SIGKILL, 12)
    assert text.startswith("rank 1 was killed by signal 9 (SIGKILL) after step 12.")
    assert "memory" in text and "--num-workers 0" in text


def test_a_crash_of_compiled_code_is_not_blamed_on_memory():
    text = describe_death("rank 0", -signal.SIGSEGV, 3)
    assert "signal 11 (SIGSEGV)" in text and "C++ or CUDA" in text and "memory runs out" not in text


def test_an_exit_without_an_error_is_named_with_its_status():
    assert describe_death("rank 1", 7, 2).startswith(
        "rank 1 ended with exit status 7 after step 2 and raised nothing"
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, 40])
def test_a_signal_that_somebody_sent_is_named_and_not_blamed_on_memory(number):
    text = describe_death("rank 1", -number, 3)
    assert f"rank 1 was killed by signal {int(number)}" in text and "memory" not in text


def test_silence_names_who_since_when_and_where():
    then = time.time() - 65
    beat = Heartbeat(
        time.monotonic() - 65, 9, 4, "it has its batch, and has not finished the forward pass"
    )
    text = describe_silence({"rank 1": beat}, 60)
    assert (
        f"rank 1 has been silent since {time.strftime('%H:%M:%S', time.localtime(then))}, for 65 s"
        in text
    )
    assert "after step 4, it has its batch, and has not finished the forward pass" in text
    assert "The limit of 60 s ended the run" in text and "--timeout" in text


def test_every_rank_that_never_started_is_named():
    beat = Heartbeat(time.monotonic() - 200)
    text = describe_silence({"rank 0": beat, "rank 1": beat}, 60)
    assert (
        "rank 0 has been silent" in text
        and text.count("it has not begun to train") == 2
        and "rank 1" in text
    )


def fail_in_torch():
    import torch

    torch.nn.Linear(2, 2)(torch.zeros(3))


def test_calls_inside_of_torch_are_counted_and_the_innermost_one_is_kept():
    with pytest.raises(RuntimeError) as error:
        fail_in_torch()
    text = short_traceback(error.value)
    assert "in fail_in_torch" in text and "calls inside of Lightning and torch" in text
    # another file where a default device is set
    innermost = traceback.extract_tb(error.value.__traceback__)[-1]
    # an environment may lie in this folder
    shown = innermost.filename.removeprefix(f"{Path.cwd()}{os.sep}")
    assert text.count("site-packages") == 1 and f'{shown}", line {innermost.lineno}, in' in text
    assert text.rstrip().splitlines()[-1].startswith("RuntimeError: ")


def test_the_cause_of_an_error_is_kept():
    with pytest.raises(ValueError, match="second") as error:
        try:
            raise KeyError("first")
        except KeyError as cause:
            raise ValueError("second") from cause
    text = short_traceback(error.value)
    assert (
        text.index("KeyError: 'first'")
        < text.index("direct cause")
        < text.index("ValueError: second")
    )
