"""Run a child process that may hang or die, and describe how it ended.

A probe's child is `python -m course_utils.doctor --probe NAME`. It tells what it finds line by line, so that when it
hangs or dies, the step that it was in is known.
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

MARK = "@probe "  # starts a line that is for the doctor, among whatever else libraries print
CHATTER = 4  # a child that keeps talking gets this many times the limit in all
# An import gets this many times the limit: it touches no device, and from a cold disk torch's may take long.
IMPORTING = 3


@dataclass(frozen=True)
class Outcome:
    """How a child ended, and what it told until then.

    Attributes:
        ended: "well", "badly" (an exit status other than 0), "killed" (by a signal) or "late" (silent for too
            long, so stopped).
        told: the facts that it told, the last `step` among them.
        kernels: one entry for each device on which a kernel was tried.
        signal: name of the signal that killed it.
        noise: the end of what it printed besides, for a person to read.
    """

    ended: str
    told: dict = field(default_factory=dict)
    kernels: tuple[dict, ...] = ()
    signal: str = ""
    noise: str = ""


def run_probe(name: str, limit_s: float) -> Outcome:
    """Run one probe in a child process that may be silent for `limit_s` seconds, and return how that went."""
    package = Path(__file__).resolve().parents[2]
    path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
    # A backend that loads itself with torch is tried alone, so that it cannot spoil the other families.
    autoload = {} if name == "tpu" else {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    command = [sys.executable, "-m", "course_utils.doctor", "--probe", name]
    return run_limited(command, limit_s, {**os.environ, "PYTHONPATH": path, **autoload})


def run_limited(command: list[str], limit_s: float, environment: dict[str, str] | None = None) -> Outcome:
    """Run a command, and end it with everything that it started once it has been silent for `limit_s` seconds."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        child = subprocess.Popen(
            command, env=environment, text=True, errors="replace", start_new_session=os.name == "posix", **pipes
        )
    except OSError as error:
        return Outcome("badly", noise=str(error))
    lines, late = _listen(child, limit_s)
    facts = [json.loads(line[len(MARK) :]) for line in lines if line.startswith(MARK) and line.endswith("}")]
    told = {key: value for fact in facts for key, value in fact.items()}
    kernels = tuple(fact["kernel"] for fact in facts if "kernel" in fact)
    noise = "\n".join(line for line in lines if not line.startswith(MARK)).strip()[-2000:]
    number = -child.returncode if child.returncode and child.returncode < 0 else 0
    ended = "late" if late else "killed" if number else "badly" if child.returncode else "well"
    return Outcome(ended, told, kernels, signal.Signals(number).name if number else "", noise)


def _listen(child: subprocess.Popen, limit_s: float) -> tuple[list[str], bool]:
    """Return the child's lines, and whether it had to be stopped because the next one did not come in time."""
    arriving: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        with child.stdout:
            for line in child.stdout:
                arriving.put(line.rstrip("\n"))
        arriving.put(None)

    threading.Thread(target=read, daemon=True).start()
    lines: list[str] = []
    end, patience_s = time.monotonic() + CHATTER * limit_s, limit_s
    try:
        while (line := arriving.get(timeout=max(0, min(patience_s, end - time.monotonic())))) is not None:
            lines.append(line)
            if line.startswith(MARK):
                patience_s = limit_s * (IMPORTING if '"step": "importing' in line else 1)
        child.wait(limit_s)
    except (queue.Empty, subprocess.TimeoutExpired):
        late = child.poll() is None
        _stop(child)
        return lines, late
    return lines, False


def _stop(child: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL) if os.name == "posix" else child.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):  # stuck inside the kernel, where no signal reaches it
        child.wait(1)


def tell(**facts: object) -> None:
    """Tell the doctor something, at once: the next step may never end."""
    print(f"\n{MARK}{json.dumps(facts)}", flush=True)
