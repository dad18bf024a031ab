"""Run a child process with a time limit, and report how it ended.

A probe prints each fact as a line of its own, so that the step in which it hung or died is known.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

BUILT_IN = ("nvidia", "cpu", "cuda", "mps", "xpu", "xla")  # need no backend that loads itself
PREFIX = "@probe "  # of a line for the doctor, among whatever else libraries print


@dataclass(frozen=True)
class Outcome:
    """The end of a child process, and the facts that it reported until then."""

    ended: str  # "ok", "failed" (by its exit status), "killed" (by a signal) or "timed out"
    facts: dict = field(default_factory=dict)  # the last "step" among them
    kernels: tuple[dict, ...] = ()  # one entry for each device on which a kernel was tried
    signal: str = ""  # the name of the signal that killed it
    output: str = ""  # the end of what it printed besides, for a person to read
    limit_s: float = 0  # seconds after which it was stopped, where it was


def run_probe(name: str, limit_s: float) -> Outcome:
    """Run one function of `probes` in a child process, for at most `limit_s` seconds."""
    code = f"from course_tools.doctor import probes; probes.run({name!r})"
    folders = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH")]
    variables = {"PYTHONPATH": os.pathsep.join(filter(None, folders))}
    if name in BUILT_IN:  # a backend that loads itself with torch must not spoil these
        variables["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    return run_limited([sys.executable, "-c", code], limit_s, **variables)


def run_limited(command: list[str], limit_s: float, **variables: str) -> Outcome:
    """Run a command in a session of its own, and end that session after `limit_s` seconds."""
    try:
        child = subprocess.Popen(
            command,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return Outcome("failed", output=str(error))
    printed, timed_out = b"", False
    try:
        printed, _ = child.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        timed_out = True
    _end_session(child)
    if timed_out:
        try:
            printed, _ = child.communicate(timeout=2)
        except subprocess.TimeoutExpired as still:  # it is stuck inside the kernel
            printed = still.output or b""
    return read_outcome(child.returncode, printed, limit_s if timed_out else 0)


def report(**facts: object) -> None:
    """Report facts to the doctor at once: the next step may never end."""
    print(f"\n{PREFIX}{json.dumps(facts)}", flush=True)


def _end_session(child: subprocess.Popen) -> None:
    """End the child and every process that it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL) if os.name == "posix" else child.kill()


def read_outcome(status: int | None, printed: bytes, limit_s: float = 0) -> Outcome:
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
    output = "\n".join(others).strip()[-2000:]
    return Outcome(ended, facts, tuple(kernels), killer, output, limit_s)


def _signal_name(status: int) -> str:
    if status > 0:  # Windows ends a process with a large number: 0xC0000005 is a wrong address
        return f"0x{status:X}"
    names = {known.value: known.name for known in signal.Signals}
    return names.get(-status, f"signal {-status}")
