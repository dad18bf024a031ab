"""A child process that hangs, dies, babbles or cannot start is described, and leaves nothing
behind.
"""

import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from stand_ins import needs_linux

from course_utils import doctor
from course_utils.doctor import probes
from course_utils.doctor.causes import find_cause
from course_utils.doctor.children import (
    MOST_BYTES,
    PREFIX,
    Outcome,
    _describe,
    run_limited,
    run_probe,
)
from course_utils.doctor.evidence import Evidence, Package
from course_utils.hardware import KINDS

pytestmark = pytest.mark.process


TORCH = Package("2.9.0", "12.8")


def python(code, limit_s=20.0):
    return run_limited([sys.executable, "-c", code], limit_s)


def test_facts_are_kept_apart_from_noise():
    outcome = python(
        f"""print('warming up'); print('{PREFIX}{{"step": "one", "count": 2}}'); print('done')"""
    )
    assert (outcome.ended, outcome.told, outcome.noise) == (
        "well",
        {"step": "one", "count": 2},
        "warming up\ndone",
    )


def test_what_was_told_before_a_hang_is_kept():
    outcome = python(
        f"""import time; print('{PREFIX}{{"step": "one"}}', flush=True); time.sleep(600)""",
        limit_s=2,
    )
    assert (outcome.ended, outcome.told) == ("late", {"step": "one"})


@pytest.mark.parametrize(
    ("step", "ended"), [("importing torch", "well"), ("starting CUDA", "late")]
)
def test_an_import_may_take_longer_than_a_step_that_touches_a_device(step, ended):
    code = f"""import time; print('{PREFIX}{{"step": "{step}"}}', flush=True); time.sleep(2.5)"""
    assert python(code, limit_s=1.5).ended == ended


def test_an_import_that_never_ends_is_stopped_too():
    outcome = python(
        f"""import time; print('{PREFIX}{{"step": "importing torch"}}', flush=True); time.sleep(600)""",
        1,
    )
    assert (outcome.ended, outcome.told, outcome.limit_s) == (
        "late",
        {"step": "importing torch"},
        3,
    )


def test_a_child_that_never_stops_talking_is_stopped_too():
    outcome = python(
        "import time\nwhile True:\n    print('.', flush=True)\n    time.sleep(0.05)", limit_s=1
    )
    assert outcome.ended == "late"


@needs_linux
@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGKILL"])
def test_the_signal_that_killed_a_child_is_named(name):
    outcome = python(f"import os, signal; os.kill(os.getpid(), signal.{name})")
    assert (outcome.ended, outcome.signal) == ("killed", name)


def test_an_exit_status_and_its_last_words_are_kept():
    outcome = python("import sys; sys.exit('no good')")
    assert (outcome.ended, outcome.noise) == ("badly", "no good")


def test_a_command_that_does_not_exist_ended_badly():
    outcome = run_limited(["there-is-no-such-command"], 1)
    assert outcome.ended == "badly" and "there-is-no-such-command" in outcome.noise


@needs_linux
def test_a_signal_without_a_name_is_named_by_its_number():
    outcome = python("import os; os.kill(os.getpid(), 40)")
    assert (outcome.ended, outcome.signal) == ("killed", "signal 40")


@pytest.mark.parametrize("line", ["{not json}", "7", "", '{"kernel": 7}'])
def test_a_line_of_another_program_with_the_probes_own_prefix_does_no_harm(line):
    outcome = python(f"""print('{PREFIX}' + {line!r}); print('{PREFIX}{{"count": 2}}')""")
    assert (outcome.ended, outcome.told["count"], outcome.kernels) == ("well", 2, ())


def test_a_child_that_prints_without_end_is_stopped_and_little_of_it_is_kept():
    tracemalloc.start()
    outcome = python("while True: print('x' * 10_000)", limit_s=60)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert outcome.ended == "badly" and f"more than {MOST_BYTES:,} bytes" in outcome.noise
    assert len(outcome.noise) < 3000 and peak_bytes < 20 * MOST_BYTES


def test_bytes_that_are_no_text_do_no_harm():
    outcome = python("import sys; sys.stdout.buffer.write(b'\\xff\\xfe name\\n')")
    assert outcome.ended == "well" and "name" in outcome.noise


@needs_linux
@pytest.mark.parametrize(("last", "ended"), [("time.sleep(600)", "late"), ("", "well")])
def test_a_child_takes_its_own_children_along(last, ended):
    """However it ends, and though its child holds its pipe open."""
    outcome = python(
        f"import subprocess, time; sleep = subprocess.Popen(['sleep', '600'])\nprint(sleep.pid, flush=True); {last}",
        limit_s=2,
    )
    grandchild = int(outcome.noise)
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
    assert outcome.ended == ended


@needs_linux
def test_a_child_that_waits_for_a_core_is_not_late():
    """Real: three programs that never rest have the child's core, so that its second of work takes
    four.
    """
    pinned = f"import os, time; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}})\n"
    others = [
        subprocess.Popen([sys.executable, "-c", pinned + "while True: pass"]) for _ in range(3)
    ]
    try:
        assert python(pinned + "while time.process_time() < 1: pass", limit_s=2).ended == "well"
    finally:
        for other in others:
            other.kill()
            other.wait()


def test_children_that_hang_are_waited_for_side_by_side(monkeypatch):
    """Eight children meet at a barrier, which opens only when all of them run at once."""
    barrier = threading.Barrier(8)

    def hang(*_):
        barrier.wait(60)
        return Outcome("late", {"step": "importing torch"}, limit_s=30)

    monkeypatch.setattr(doctor, "run_probe", hang)
    monkeypatch.setattr(doctor, "run_limited", hang)
    outcomes = doctor._try(list(KINDS), 10.0)
    assert sorted(outcomes) == ["cpu", "cuda", "mps", "nvidia", "nvidia-smi", "tpu", "xla", "xpu"]
    every_torch = replace(TORCH, xpu=True)
    evidence = Evidence("computer", every_torch, outcomes, TORCH, TORCH)
    verdicts = {family: find_cause(family, evidence) for family in KINDS}
    assert verdicts.pop("tpu").cause == "torchtpu-off-cloud"
    assert {found.cause for found in verdicts.values()} == {"hangs"} and "30 s" in verdicts[
        "cpu"
    ].why


def test_a_torch_that_knows_no_tpu_does_not_pass_for_one_that_works():
    """Real: this torch, without TorchTPU, asked for a tensor on a TPU as on a machine that has
    one.
    """
    outcome = run_probe("tpu", 60)
    found = find_cause(
        "tpu", Evidence("tpu-vm", TORCH, {"tpu": outcome}, torch_tpu=Package("0.2.0"), tpu_chips=1)
    )
    assert (found.cause, found.usable) == ("kernel-failed", False) and "tpu" in found.why


def test_there_is_a_probe_for_every_family_and_it_runs_in_a_child():
    assert all(hasattr(probes, name) for name in (*KINDS, "nvidia"))
    outcome = run_probe("nvidia", 20)
    assert (
        outcome.ended == "well" and "NVIDIA" in outcome.told["step"] and "error" not in outcome.told
    )


def test_a_child_that_windows_has_ended_was_killed():
    assert _describe(0xC0000005, None, b"").signal == "0xC0000005"
    assert (
        _describe(0xC0000005, None, b"").ended == "killed"
        and _describe(1, None, b"").ended == "badly"
    )
