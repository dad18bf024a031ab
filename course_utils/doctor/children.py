"""Run a child process that may hang, die or babble, and describe how it ended.

A probe tells what it finds line by line, so that when it hangs or dies, the step that it was in is
known. Whatever a child does, it is bounded in time and in bytes.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from course_utils.hardware.machine import read_text

PREFIX = "@probe "  # of a line for the doctor, among whatever else libraries print
MOST_BYTES = 2**20  # that a child may print
CHATTER = 4  # a child that keeps talking gets this many times the limit in all
# An import gets this many times the limit: it touches no device, and from a cold disk torch's may
# take long.
IMPORTING = 3


@dataclass(frozen=True)
class Outcome:
    """How a child ended, and what it told until then."""

    # "well", "badly" (by its exit status, or by too many bytes), "killed" (by a signal) or "late"
    # (stopped)
    ended: str
    told: dict = field(default_factory=dict)  # the facts that it told, the last `step` among them
    kernels: tuple[dict, ...] = ()  # one entry for each device on which a kernel was tried
    signal: str = ""  # name of the signal that killed it
    noise: str = ""  # the end of what it printed besides, for a person to read
    # seconds of silence that it was allowed, where it was stopped for exceeding them
    limit_s: float = 0


def run_probe(name: str, limit_s: float) -> Outcome:
    """Run one probe in a child process that may be silent for `limit_s` seconds, and return how
    that went.
    """
    command = [
        sys.executable,
        "-c",
        f"from course_utils.doctor import probes; probes.run({name!r})",
    ]
    path = os.pathsep.join(
        filter(None, [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH")])
    )
    # A backend that loads itself with torch is tried alone, so that it cannot spoil the other
    # families.
    autoload = {} if name == "tpu" else {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    return run_limited(command, limit_s, PYTHONPATH=path, **autoload)


def run_limited(command: list[str], limit_s: float, **variables: str) -> Outcome:
    """Run a command in a session of its own, and end that at the latest after `limit_s` seconds of
    silence.
    """
    null, pipe, same = subprocess.DEVNULL, subprocess.PIPE, subprocess.STDOUT
    environment = {**os.environ, **variables}
    try:
        child = subprocess.Popen(
            command, env=environment, stdin=null, stdout=pipe, stderr=same, start_new_session=True
        )
    except OSError as error:
        return Outcome("badly", noise=str(error))
    said = bytearray()
    reader = threading.Thread(target=_read, args=(child.stdout, said), daemon=True)
    reader.start()
    late_s = _wait(child, said, limit_s)
    _stop(child)
    reader.join(1)  # a process that has left the child's session may hold the pipe open
    return _describe(child.returncode, late_s, bytes(said))


def tell(**facts: object) -> None:
    """Tell the doctor something, at once: the next step may never end."""
    print(f"\n{PREFIX}{json.dumps(facts)}", flush=True)


def _read(output: io.BufferedReader, said: bytearray) -> None:
    with output:
        while len(said) <= MOST_BYTES and (chunk := output.read1(65536)):
            said.extend(chunk)


def _wait(child: subprocess.Popen, said: bytearray, limit_s: float) -> float | None:
    """Return the limit in seconds that the child has exceeded, or None when it ended or printed too
    much.

    Waiting for a core does not count.
    """
    heard, heard_s = 0, _clock_s(child.pid)
    end_s = heard_s + CHATTER * limit_s
    while len(said) <= MOST_BYTES:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(0.05)
            return None
        now_s = _clock_s(child.pid)
        if len(said) > heard:
            heard, heard_s = len(said), now_s
        step = said.rpartition(PREFIX.encode())[2]
        patience_s = limit_s * (IMPORTING if step.startswith(b'{"step": "importing') else 1)
        if now_s > min(heard_s + patience_s, end_s):
            return patience_s
    return None


def _clock_s(pid: int) -> float:
    """Return a time that stands still while the process is ready to run and others have the cores
    (Linux: proc(5)).
    """
    # nanoseconds run, nanoseconds queued, time slices
    told = read_text(Path(f"/proc/{pid}/schedstat")).split()
    return time.monotonic() - (int(told[1]) / 1e9 if len(told) == 3 else 0.0)


def _stop(child: subprocess.Popen) -> None:
    """End the child and every process of its session, whether or not the child itself has ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL) if os.name == "posix" else child.kill()
    # stuck inside the kernel, where no signal reaches it
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(1)


def _describe(status: int | None, late_s: float | None, said: bytes) -> Outcome:
    lines = said.decode(errors="replace").splitlines()
    facts: list[dict] = []
    for line in lines:
        with contextlib.suppress(ValueError, TypeError):  # it was torn, or is another program's
            facts += [dict(json.loads(line[len(PREFIX) :]))] if line.startswith(PREFIX) else []
    told = {key: value for fact in facts for key, value in fact.items()}
    kernels = tuple(fact["kernel"] for fact in facts if isinstance(fact.get("kernel"), dict))
    noise = "\n".join(line for line in lines if not line.startswith(PREFIX)).strip()[-2000:]
    if len(said) > MOST_BYTES:
        return Outcome(
            "badly", told, kernels, noise=f"{noise}\nit printed more than {MOST_BYTES:,} bytes."
        )
    if late_s is not None:
        return Outcome("late", told, kernels, noise=noise, limit_s=late_s)
    if status is None or 0 <= status < 2**31:
        return Outcome("badly" if status else "well", told, kernels, noise=noise)
    # most real-time signals have none
    names = {known.value: known.name for known in signal.Signals}
    # Windows ends one with a large number, such as 0xC0000005: a wrong address.
    killer = f"0x{status:X}" if status > 0 else names.get(-status, f"signal {-status}")
    return Outcome("killed", told, kernels, killer, noise)
