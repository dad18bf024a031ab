"""Run child processes side by side with a time limit, and report how each ended.

A probe prints each fact as a line of its own, so that the step in which it hung or died is known.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from course_utils.hardware.machine import read_text

PREFIX = "@probe "  # of a line for the doctor, among whatever else libraries print
MOST_BYTES = 4_000_000  # of output, after which a child is stopped
MOST_SHOWN = 2000  # characters of it, in a report
PAUSE_S = 0.02  # between two looks at the children
# A child that has used the processor for more than this share of its last seconds was at work.
WORKING = 0.02


@dataclass(frozen=True)
class Outcome:
    """The end of a child process, and the facts that it reported until then."""

    ended: str  # "ok", "failed" (by its exit status), "killed" (by a signal) or "timed out"
    facts: dict = field(default_factory=dict)  # the last "step" among them
    kernels: tuple[dict, ...] = ()  # one entry for each device on which a kernel was tried
    signal: str = ""  # the name of the signal that killed it
    output: str = ""  # the end of what it printed besides, for a person to read
    limit_s: float = 0  # seconds after which it was stopped, where it was
    working: bool = False  # True where it was stopped while it still computed


@dataclass(frozen=True)
class Command:
    """A command, and the environment variables that it gets besides this process's own."""

    words: list[str]
    variables: dict[str, str] = field(default_factory=dict)


def probe_command(name: str) -> Command:
    """Return the command that runs one function of `probes`."""
    code = f"from course_tools.doctor import probes; probes.run({name!r})"
    folders = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH")]
    variables = {
        "PYTHONPATH": os.pathsep.join(filter(None, folders)),
        # a backend that loads itself with torch must not spoil these
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    }
    return Command([sys.executable, "-c", code], variables)


def run_all(commands: dict[str, Command], limit_s: float) -> dict[str, Outcome]:
    """Run commands side by side, each in a session that is ended after `limit_s` seconds."""
    start = time.monotonic()
    outcomes: dict[str, Outcome] = {}
    children: dict[str, _Child] = {}
    for name, command in commands.items():
        try:
            children[name] = _Child(command)
        except OSError as error:
            outcomes[name] = Outcome("failed", output=str(error))
    while children:
        time.sleep(PAUSE_S)
        spent_s = time.monotonic() - start
        for name, child in [*children.items()]:
            if spent_s < limit_s / 2:
                child.half_cpu_s = child.cpu_s()
            if child.has_ended():
                outcomes[name] = child.end(0)
            elif spent_s > limit_s:
                outcomes[name] = child.end(limit_s)
            if name in outcomes:
                del children[name]
    return outcomes


class _Child:
    """A child process that writes into a file, from which it is read once it has ended."""

    def __init__(self, command: Command):
        self.printed = _open_file()
        try:
            self.process = subprocess.Popen(
                command.words,
                env={**os.environ, **command.variables},
                stdin=subprocess.DEVNULL,
                stdout=self.printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError:
            self.printed.close()
            raise
        self.half_cpu_s = 0.0  # used in the first half of its time

    def has_ended(self) -> bool:
        """Say whether it has ended, or has printed more than anybody would read."""
        size_bytes = os.fstat(self.printed.fileno()).st_size
        return self.process.poll() is not None or size_bytes > MOST_BYTES

    def cpu_s(self) -> float:
        """Return the seconds for which it has had a processor; 0 where /proc does not say it."""
        # proc(5): user and system time are fields 14 and 15; the second, a name, may hold spaces
        words = read_text(Path(f"/proc/{self.process.pid}/stat")).rpartition(")")[2].split()
        return sum(map(int, words[11:13])) / os.sysconf("SC_CLK_TCK") if words else 0.0

    def end(self, limit_s: float) -> Outcome:
        """End its session and return how it ended; `limit_s` is 0 unless its time was over."""
        working = limit_s > 0 and self.cpu_s() - self.half_cpu_s > WORKING * limit_s / 2
        _end_session(self.process)
        with contextlib.suppress(subprocess.TimeoutExpired):  # it is stuck inside the kernel
            self.process.wait(timeout=2)
        with self.printed:
            self.printed.seek(0)
            printed = self.printed.read(MOST_BYTES)
        return read_outcome(self.process.returncode, printed, limit_s, working)


def _open_file() -> BinaryIO:
    """Return a nameless file, in memory where the system has such: a disk may be full."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("doctor"), "w+b")
    return cast(BinaryIO, tempfile.TemporaryFile())


def tell(**facts: object) -> None:
    """Tell facts to the doctor at once: the next step may never end."""
    print(f"\n{PREFIX}{json.dumps(facts)}", flush=True)


def _end_session(child: subprocess.Popen) -> None:
    """End the child and every process that it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL) if os.name == "posix" else child.kill()


def read_outcome(
    status: int | None, printed: bytes, limit_s: float = 0, working: bool = False
) -> Outcome:
    """Return the outcome of a child with this exit status; `limit_s` is 0 unless it timed out."""
    facts: dict = {}
    kernels, others = [], []
    for line in printed.decode(errors="replace").splitlines():
        if not line.startswith(PREFIX):
            others.append(line)
            continue
        with contextlib.suppress(ValueError, TypeError):  # a torn line
            reported = dict(json.loads(line[len(PREFIX) :]))
            facts.update(reported)
            if isinstance(reported.get("kernel"), dict):
                kernels.append(reported["kernel"])
    ended, killer = "ok", ""
    if limit_s:
        ended = "timed out"
    elif status is None or status < 0 or status >= 2**31:
        ended, killer = "killed", _signal_name(status or 0)
    elif status:
        ended = "failed"
    output = _end_of("\n".join(others).strip())
    return Outcome(ended, facts, tuple(kernels), killer, output, limit_s, working)


def _end_of(text: str) -> str:
    """Return the last lines of a text, whole ones: half a key is not known for a key."""
    if len(text) <= MOST_SHOWN:
        return text
    return text[-MOST_SHOWN:].partition("\n")[2] or text.rpartition("\n")[2][:MOST_SHOWN]


def _signal_name(status: int) -> str:
    if status > 0:  # Windows ends a process with a large number: 0xC0000005 is a wrong address
        return f"0x{status:X}"
    names = {known.value: known.name for known in signal.Signals}
    return names.get(-status, f"signal {-status}")
