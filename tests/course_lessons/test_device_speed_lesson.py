import os
import subprocess
import sys
import time

import psutil
import pytest
import torch
from course_lessons.device_speed import busy_neighbours, used_so_far

from course_utils.devices import usable_cores


@pytest.mark.process
def test_there_is_a_neighbour_for_every_core_and_none_afterwards():
    before = set(psutil.Process().children())
    with busy_neighbours():
        neighbours = set(psutil.Process().children()) - before
        assert len(neighbours) == usable_cores()
    assert not any(neighbour.is_running() for neighbour in neighbours)


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script of /bin/sh")
def test_neighbours_are_busy_where_a_venvs_python_starts_another_as_on_windows(
    tmp_path, monkeypatch
):
    launcher = tmp_path / "python"
    launcher.write_text(f'#!/bin/sh\n"{sys.executable}" "$@"\nexit\n', encoding="utf-8")
    launcher.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(launcher))
    with busy_neighbours():
        time.sleep(1)
        started = [one for child in psutil.Process().children() for one in child.children()]
        assert len(started) == usable_cores() and all(one.is_running() for one in started)
    _, alive = psutil.wait_procs(started, timeout=10)
    assert not alive


@pytest.mark.skipif(sys.platform != "linux", reason="other systems bring pages in by other rules")
def test_new_memory_costs_a_page_fault_for_each_page_and_work_costs_time():
    start = time.process_time()
    before = used_so_far()
    # 64 MiB, which the system hands out in pages of 4 KiB, or of 2 MiB where it is set up so
    torch.ones(2**24)
    while time.process_time() < start + 0.05:
        pass
    after = used_so_far()
    assert after["page faults"] - before["page faults"] >= 32
    assert (
        after["user, µs"] + after["system, µs"]
        >= before["user, µs"] + before["system, µs"] + 30_000
    )


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_neighbours_end_when_the_process_that_started_them_is_killed():
    code = (
        "import os, signal\nfrom course_lessons.device_speed import busy_neighbours\n"
        "with busy_neighbours():\n    print('busy', flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    environ = {**os.environ, "COURSE_TEST_NEIGHBOURS": "1"}
    subprocess.run([sys.executable, "-c", code], env=environ, stdout=subprocess.PIPE, check=False)
    end = time.monotonic() + 30
    while neighbours_of_this_test() and time.monotonic() < end:
        time.sleep(0.1)
    assert neighbours_of_this_test() == []


def neighbours_of_this_test():
    running = psutil.process_iter(["environ"])  # None for the processes of other users
    return [one for one in running if "COURSE_TEST_NEIGHBOURS" in (one.info["environ"] or {})]
