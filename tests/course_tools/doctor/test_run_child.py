"""A child process that hangs, dies, babbles or cannot start is described, and leaves nothing
behind.
"""

import os
import signal
import sys
import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from stand_ins import needs_linux

from course_tools import doctor
from course_tools.doctor.causes import find_cause
from course_tools.doctor.evidence import Evidence, Package
from course_tools.doctor.run_child import (
    PREFIX,
    Outcome,
    read_outcome,
    run_limited,
    run_probe,
)
from course_utils.hardware import KINDS

pytestmark = pytest.mark.process


TORCH = Package("2.9.0", "12.8")


def python(code, limit_s=20.0):
    return run_limited([sys.executable, "-c", code], limit_s)


def test_facts_are_kept_apart_from_noise():
    outcome = python(
        f"""print('warming up'); print('{PREFIX}{{"step": "one", "count": 2}}'); print('done')"""
    )
    assert (outcome.ended, outcome.facts, outcome.output) == (
        "ok",
        {"step": "one", "count": 2},
        "warming up\ndone",
    )


def test_what_was_told_before_a_hang_is_kept():
    outcome = python(
        f"""import time; print('{PREFIX}{{"step": "one"}}', flush=True); time.sleep(600)""",
        limit_s=2,
    )
    assert (outcome.ended, outcome.facts) == ("timed out", {"step": "one"})


@needs_linux
@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGKILL"])
def test_the_signal_that_killed_a_child_is_named(name):
    outcome = python(f"import os, signal; os.kill(os.getpid(), signal.{name})")
    assert (outcome.ended, outcome.signal) == ("killed", name)


def test_an_exit_status_and_its_last_words_are_kept():
    outcome = python("import sys; sys.exit('no good')")
    assert (outcome.ended, outcome.output) == ("failed", "no good")


def test_a_command_that_does_not_exist_ended_badly():
    outcome = run_limited(["there-is-no-such-command"], 1)
    assert outcome.ended == "failed" and "there-is-no-such-command" in outcome.output


@needs_linux
def test_a_child_takes_its_own_children_along():
    code = """
        import subprocess, time
        sleep = subprocess.Popen(["sleep", "600"])
        print(sleep.pid, flush=True)
        time.sleep(600)
    """
    outcome = python(textwrap.dedent(code), limit_s=2)
    grandchild = int(outcome.output)
    for _ in range(50):  # until it is gone, or only waits to be collected
        try:
            os.kill(grandchild, 0)
            if Path(f"/proc/{grandchild}/stat").read_text().split()[2] == "Z":
                break
        except (ProcessLookupError, FileNotFoundError):
            break
        time.sleep(0.1)
    else:
        os.kill(grandchild, signal.SIGKILL)
        pytest.fail("the grandchild lived on")
    assert outcome.ended == "timed out"


def test_children_that_hang_are_waited_for_side_by_side(monkeypatch):
    """Eight children meet at a barrier, which opens only when all of them run at once."""
    barrier = threading.Barrier(8)

    def hang(*_):
        barrier.wait(60)
        return Outcome("timed out", {"step": "importing torch"}, limit_s=30)

    monkeypatch.setattr(doctor, "run_probe", hang)
    monkeypatch.setattr(doctor, "run_limited", hang)
    outcomes = doctor._run_probes(list(KINDS), 10.0)
    assert sorted(outcomes) == ["cpu", "cuda", "mps", "nvidia", "nvidia-smi", "tpu", "xla", "xpu"]
    every_torch = replace(TORCH, xpu=True)
    evidence = Evidence("computer", every_torch, outcomes, TORCH, TORCH)
    verdicts = {kind: find_cause(kind, evidence) for kind in KINDS}
    assert verdicts.pop("tpu").cause == "torchtpu-off-cloud"
    assert {found.cause for found in verdicts.values()} == {"hangs"} and "30 s" in verdicts[
        "cpu"
    ].why


def test_a_probe_runs_in_a_child():
    outcome = run_probe("nvidia", 20)
    assert (
        outcome.ended == "ok" and "NVIDIA" in outcome.facts["step"] and "error" not in outcome.facts
    )


def test_a_child_that_windows_has_ended_was_killed():
    assert read_outcome(0xC0000005, b"").signal == "0xC0000005"
    assert (
        read_outcome(0xC0000005, b"").ended == "killed" and read_outcome(1, b"").ended == "failed"
    )
