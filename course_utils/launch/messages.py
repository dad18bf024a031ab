"""The errors of a launch, and the sentences that say why a run failed."""

import signal
import time
from typing import NamedTuple

from course_utils.launch.link import Heartbeat


class LaunchError(ValueError):
    """A request that cannot be met, with what was found and what to do."""


class RunError(Exception):
    """A run that failed after it had started: a rank raised, was killed, or fell silent."""


class Fault(NamedTuple):
    """An exception of one process: who raised it ("rank 1"), its last line, and its whole traceback.

    `indirect` is True when another process than the rank reports it.
    """

    who: str
    error: str
    traceback: str
    indirect: bool = False


def describe_faults(faults: list[Fault]) -> str:
    """Return who raised first, and who failed because of it."""
    first, *rest = faults
    others = {fault.who: fault.error.partition("\n")[0] for fault in reversed(rest) if fault.who != first.who}
    then = "".join(f" Then {who} failed, most likely because of it: {error}" for who, error in others.items())
    return f"{first.who} raised {first.error}{'' if first.error.endswith('.') else '.'}{then}"


def describe_death(who: str, status: int, step: int) -> str:
    """Return what ended a process that raised nothing, and what to try.

    Args:
        who: such as "rank 1".
        status: its exit status, or minus the signal that ended it, as in `subprocess`.
        step: the steps that it had finished.
    """
    if status >= 0:
        return (
            f"{who} ended with exit status {status} after step {step}, before the training was done, and raised "
            f"nothing: something in it called exit, or it was interrupted."
        )
    advice = "That comes from C++ or CUDA code rather than from Python: its own message, if any, is above."
    if -status in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        advice = "Another program, or a person, asked it to stop."
    elif -status == signal.SIGKILL:
        advice = (
            "Most often the system does this when memory runs out (`dmesg` or the job's log says so): try a smaller "
            "--global-batch, fewer --devices, or --num-workers 0."
        )
    names = {number.value: f" ({number.name})" for number in signal.Signals}
    return f"{who} was killed by signal {-status}{names.get(-status, '')} after step {step}. {advice}"


def describe_silence(silent: dict[int, Heartbeat], limit_s: float, missing: int) -> str:
    """Return which ranks gave no sign of life, since when, and where they stood.

    Args:
        silent: the last heartbeat of each silent rank; its count is 0 for one that never began to train.
        limit_s: how long a rank may be silent.
        missing: how many ranks never started.
    """
    reasons = []
    for rank, beat in silent.items():
        silent_s = time.monotonic() - beat.time_s
        since = time.strftime("%H:%M:%S", time.localtime(time.time() - silent_s))
        reasons.append(f"rank {rank} has been silent since {since}, for {silent_s:.0f} s: {beat.where}")
    reasons += [f"{missing} of the ranks of this machine never started"] if missing else []
    advice = f"The limit of {limit_s:g} s ended the run. If it was only slow, pass a longer --timeout."
    return f"{'; '.join(reasons)}. {advice}"
