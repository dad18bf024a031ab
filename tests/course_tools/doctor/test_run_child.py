"""A child process that hangs, dies, babbles or cannot start is described, and leaves nothing
behind.
"""

import os
import signal
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from stand_ins import needs_linux

from course_tools.doctor import run_child
from course_tools.doctor.causes import find_cause
from course_tools.doctor.evidence import Evidence
from course_tools.doctor.packages import Package
from course_tools.doctor.run_child import (
    PREFIX,
    Command,
    probe_command,
    read_outcome,
    run_all,
)

TORCH = Package("2.9.0", "12.8")


STARTED_S = 10  # in which a child has begun, on a busy machine too


def run(*words, limit_s=60.0):
    return run_all({"it": Command([*words])}, limit_s)["it"]


def python(code, limit_s=60.0):
    return run(sys.executable, "-c", code, limit_s=limit_s)


def test_children_are_looked_at_in_turns_until_they_end_or_their_time_is_over(monkeypatch):
    now, looks = [0.0], []

    def pause(seconds):
        now[0] += seconds

    class Child:
        half_cpu_s = 0.0

        def __init__(self, command):
            (self.ends_s,) = command.words

        def cpu_s(self):
            return now[0]

        def has_ended(self):
            looks.append(now[0])
            assert len(looks) < 1000, "it looks without a pause"
            return now[0] > self.ends_s

        def end(self, limit_s):
            return round(now[0], 2), round(self.half_cpu_s, 2), limit_s

    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=pause)
    monkeypatch.setattr(run_child, "time", clock)
    monkeypatch.setattr(run_child, "_Child", Child)
    found = run_all({"quick": Command([0.11]), "slow": Command([9.0])}, 1.01)
    # one look each 0.02 s; what was computed in the first half is noted until half the time is over
    assert found == {"quick": (0.12, 0.12, 0), "slow": (1.02, 0.5, 1.01)}


@pytest.mark.parametrize(
    ("size_bytes", "limit_s", "cpu_s", "babbles", "working"),
    [
        (4_000_000, 40, 1.39, False, False),
        (4_000_001, 40, 1.41, True, True),  # more than a fiftieth of the second half of 40 s
        (0, 0, 9.0, False, False),  # it ended by itself
    ],
)
def test_a_child_is_stopped_when_it_babbles_and_was_at_work_if_it_computed_to_the_end(
    size_bytes, limit_s, cpu_s, babbles, working, monkeypatch, tmp_path
):
    how = {}

    def start(words, **more):
        how.update(more)
        return SimpleNamespace(poll=lambda: None, wait=lambda timeout: None, returncode=0)

    monkeypatch.setattr(run_child.subprocess, "Popen", start)
    monkeypatch.setattr(run_child, "_end_session", lambda process: None)
    monkeypatch.setattr(run_child._Child, "cpu_s", lambda self: cpu_s)
    child = run_child._Child(probe_command("cpu"))
    child.printed.truncate(size_bytes)
    child.half_cpu_s = 1.0
    assert child.has_ended() == babbles and child.end(limit_s).working == working
    # it reads nothing, its own children end with it, and no other backend loads itself
    assert how["stdin"] == run_child.subprocess.DEVNULL and how["start_new_session"]
    assert how["env"]["TORCH_DEVICE_BACKEND_AUTOLOAD"] == "0"


@pytest.mark.process
def test_facts_are_kept_apart_from_noise():
    outcome = python(
        f"""print('warming up'); print('{PREFIX}{{"step": "one", "count": 2}}'); print('done')"""
    )
    assert (outcome.ended, outcome.facts, outcome.output) == (
        "ok",
        {"step": "one", "count": 2},
        "warming up\ndone",
    )


@pytest.mark.process
def test_what_was_told_before_a_hang_is_kept():
    outcome = python(
        f"""import time; print('{PREFIX}{{"step": "one"}}', flush=True); time.sleep(600)""",
        limit_s=STARTED_S,
    )
    assert (outcome.ended, outcome.facts) == ("timed out", {"step": "one"})


@pytest.mark.process
@needs_linux
@pytest.mark.parametrize(
    ("code", "ended", "signal_", "output"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "killed", "SIGSEGV", ""),
        ("os.kill(os.getpid(), signal.SIGKILL)", "killed", "SIGKILL", ""),
        ("sys.exit('no good')", "failed", "", "no good"),
    ],
)
def test_the_signal_or_the_last_words_of_a_child_are_kept(code, ended, signal_, output):
    outcome = python(f"import os, signal, sys; {code}")
    assert (outcome.ended, outcome.signal, outcome.output) == (ended, signal_, output)


@pytest.mark.process
def test_a_command_that_does_not_exist_ended_badly():
    outcome = run("there-is-no-such-command")
    assert outcome.ended == "failed" and "there-is-no-such-command" in outcome.output


@pytest.mark.process
@needs_linux
def test_a_child_takes_its_own_children_along():
    code = """
        import subprocess, time
        sleep = subprocess.Popen(["sleep", "600"])
        print(sleep.pid, flush=True)
        time.sleep(600)
    """
    outcome = python(textwrap.dedent(code), limit_s=STARTED_S)
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


@pytest.mark.process
@needs_linux
@pytest.mark.parametrize(
    ("does", "cause", "limit_s"),
    [
        ("pass", "slow", 3),
        ("os.urandom(10**8)", "slow", 3),  # computes inside the system
        ("time.sleep(600)", "hangs", 3),
        # computed only at first, for a fifth of a second: the first half is long enough for it
        ("sum(range(8_000_000)), time.sleep(600)", "hangs", 8),
    ],
)
def test_a_child_that_still_computes_is_slow_and_one_that_waits_hangs(does, cause, limit_s):
    outcome = python(f"import os, time\nwhile True: {does}", limit_s)
    found = find_cause("cpu", Evidence("computer", TORCH, {"cpu": outcome}))
    assert found.cause == cause and f"{limit_s} s" in found.why
    assert found.works == ("not known" if cause == "slow" else "no")


@pytest.mark.process
def test_a_child_that_prints_without_end_is_stopped_and_its_last_words_are_kept():
    outcome = python("while True: print('x' * 1000)", limit_s=300)
    assert (outcome.ended, outcome.signal) == ("killed", "SIGKILL")
    assert 0 < len(outcome.output) <= 2000


@pytest.mark.parametrize(
    ("status", "ended", "signal_"),
    [
        (0xC0000005, "killed", "0xC0000005"),  # Windows: STATUS_ACCESS_VIOLATION of NTSTATUS
        (0xC0000409, "killed", "0xC0000409"),  # and STATUS_STACK_BUFFER_OVERRUN
        (0x80000000, "killed", "0x80000000"),  # the least of a warning, by its first two bits
        (0x7FFFFFFF, "failed", ""),
        (1, "failed", ""),
        (0, "ok", ""),
    ],
)
def test_a_status_of_windows_says_how_a_child_ended(status, ended, signal_):
    outcome = read_outcome(status, b"")
    assert (outcome.ended, outcome.signal, outcome.working) == (ended, signal_, False)


def test_last_words_begin_with_a_whole_line_so_that_no_half_of_a_key_is_shown():
    assert read_outcome(1, b"a_token=" + b"s3cr3t" * 4 + b"\n" + b"x" * 1990).output == "x" * 1990
    assert read_outcome(1, b"one long line " + b"x" * 9000).output.startswith("one long line x")


@pytest.mark.process
def test_a_probe_runs_in_a_child():
    outcome = run_all({"nvidia": probe_command("nvidia")}, 60)["nvidia"]
    assert outcome.ended == "ok"
    assert "NVIDIA" in outcome.facts["step"]
    assert "error" not in outcome.facts
