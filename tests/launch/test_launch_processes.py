"""Ending groups of processes, ports, and the lock of a folder."""

import signal
import socket
import subprocess
import sys
import time

import pytest

from course_utils.launch.processes import died_by, end_group, free_port, group_members, is_free, only_one

STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


def start(code):
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True, text=True)


def test_a_group_ends_with_its_grandchildren_though_they_ignore_sigterm():
    process = start(STUBBORN)
    grandchild = int(process.stdout.readline())
    assert {member.pid for member in group_members(process.pid)} == {process.pid, grandchild}
    end_group(process.pid)
    assert group_members(process.pid) == []
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()


def test_a_stopped_process_ends_too_and_one_can_be_spared():
    process = start(STUBBORN)
    process.stdout.readline()
    process.send_signal(signal.SIGSTOP)
    end_group(process.pid, sparing=process.pid, patience_s=2)
    assert [member.pid for member in group_members(process.pid)] == [process.pid]
    end_group(process.pid)
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux keeps the signal in /proc")
def test_the_signal_of_a_dead_process_can_be_read_until_it_is_reaped():
    process = start("import time; time.sleep(600)")
    assert died_by(process.pid) is None
    process.send_signal(signal.SIGUSR1)
    deadline = time.monotonic() + 10
    while died_by(process.pid) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert died_by(process.pid) == signal.SIGUSR1
    process.wait()
    assert died_by(process.pid) is None
    process.stdout.close()


def test_a_free_port_is_free_until_somebody_listens():
    port = free_port()
    assert is_free(port)
    with socket.socket() as server:
        server.bind(("", port))
        server.listen()
        assert not is_free(port)


def test_a_folder_is_kept_to_one_launch_until_it_ends_however_it_ends(tmp_path):
    code = (
        "from pathlib import Path; import time; from course_utils.launch.processes import only_one\n"
        f"with only_one(Path({str(tmp_path)!r})): print('mine', flush=True); time.sleep(600)"
    )
    process = start(code)
    assert process.stdout.readline() == "mine\n"
    message = f"is in use by process {process.pid} on .*, which still runs"
    with pytest.raises(RuntimeError, match=message), only_one(tmp_path):
        pass
    process.kill()
    process.wait()
    process.stdout.close()
    with only_one(tmp_path), pytest.raises(RuntimeError, match="is in use by"), only_one(tmp_path):
        pass
