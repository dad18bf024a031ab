"""Ending groups of processes, and the lock of a folder."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import psutil
import pytest

from course_utils.launch.messages import LaunchError
from course_utils.launch.processes import (
    end_group,
    exit_status,
    only_one,
    processes_with,
    write_whole,
)

pytestmark = pytest.mark.process


STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


def group_members(group):
    members = []
    for process in psutil.process_iter():
        with suppress(OSError, psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and os.getpgid(process.pid) == group:
                members.append(process.pid)
    return members


def start(code):
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True, text=True
    )


def test_a_group_ends_with_its_grandchildren_though_they_ignore_sigterm():
    process = start(STUBBORN)
    grandchild = int(process.stdout.readline())
    assert set(group_members(process.pid)) == {process.pid, grandchild}
    end_group(process, "NOBODY=has this")
    assert group_members(process.pid) == []
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()


def test_a_stopped_process_ends_too():
    process = start(STUBBORN)
    process.stdout.readline()
    process.send_signal(signal.SIGSTOP)
    end_group(process, "NOBODY=has this")
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()


SUPERVISOR = """
import os, pathlib, subprocess, sys, time
from course_utils.launch.processes import process_group
stuck = "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True); "
stuck += "import re; print('stuck', flush=True); re.match('(a+)+$', 'a' * 60 + 'b')"
folder = pathlib.Path(sys.argv[1])
with process_group([sys.executable, "-c", stuck], folder, {**os.environ, "TMPDIR": str(folder)}) as process:
    process.stdout.readline()
    print(process.pid, flush=True)
    time.sleep(600)
"""


def test_code_that_holds_the_interpreters_lock_ends_with_its_supervisor_and_so_does_all_that_came_of_it(
    tmp_path,
):
    """Also a child that has gone into a session of its own, and the folder."""
    folder = tmp_path / "a 'folder' $(of it)"
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, folder], stdout=subprocess.PIPE, text=True
    ) as supervisor:
        group = int(supervisor.stdout.readline())
        supervisor.kill()
    deadline = time.monotonic() + 10
    setting = f"TMPDIR={folder}"
    while (
        group_members(group) or processes_with(setting) or folder.exists()
    ) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert group_members(group) == processes_with(setting) == [] and not folder.exists()


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux keeps the signal in /proc"
)
def test_the_signal_of_a_dead_process_can_be_read_until_it_is_reaped():
    process = start("import time; time.sleep(600)")
    assert exit_status(process.pid) is None
    process.send_signal(signal.SIGUSR1)
    deadline = time.monotonic() + 10
    while exit_status(process.pid) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert exit_status(process.pid) == -signal.SIGUSR1
    process.wait()
    assert exit_status(process.pid) is None
    process.stdout.close()


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux tells the variables of a process"
)
def test_a_group_ends_with_a_child_in_a_session_of_its_own(tmp_path):
    setting = f"TMPDIR={tmp_path}"
    code = "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True); print(1, flush=True)"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    process.stdout.read(1)
    process.stdout.close()
    assert processes_with(setting)
    end_group(process, setting)
    assert processes_with(setting) == []


def test_a_link_in_place_of_the_lock_or_of_a_result_leads_nowhere(tmp_path):
    other = tmp_path / "other"
    other.write_text("somebody else's")
    (tmp_path / "launch.lock").symlink_to(other)
    with pytest.raises(LaunchError, match=r"cannot be used: .*symbolic"), only_one(tmp_path):
        pass
    (tmp_path / "result.json").symlink_to(other)
    write_whole(tmp_path / "result.json", b"{}")
    assert (
        other.read_text() == "somebody else's" and (tmp_path / "result.json").read_bytes() == b"{}"
    )


def test_a_folder_is_kept_to_one_launch_until_it_ends_however_it_ends(tmp_path):
    code = (
        "from pathlib import Path; import time; from course_utils.launch.processes import only_one\n"
        f"with only_one(Path({str(tmp_path)!r})): print('mine', flush=True); time.sleep(600)"
    )
    process = start(code)
    assert process.stdout.readline() == "mine\n"
    message = f"is in use by process {process.pid} on .*, which still runs"
    with pytest.raises(LaunchError, match=message), only_one(tmp_path):
        pass
    process.kill()
    process.wait()
    process.stdout.close()
    with only_one(tmp_path), pytest.raises(LaunchError, match="is in use by"), only_one(tmp_path):
        pass


def test_a_file_system_without_locks_is_not_a_launch_that_still_runs(tmp_path, monkeypatch):
    """Lustre mounted without `flock`, NFS without a lock daemon."""

    def refuse(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(LaunchError, match=r"cannot be used: .*not implemented"), only_one(tmp_path):
        pass
