"""Say in a sentence why a run failed, from all that its processes told."""

import signal
import time
from dataclasses import dataclass

from course_utils.launch.rank_link import Mark

RESUME = "The last checkpoint is whole: --resume continues from it."


class RunError(Exception):
    """A run that failed after it had started: a rank raised, was killed, or fell silent."""


@dataclass(frozen=True)
class Fault:
    """What went wrong in one process.

    Attributes:
        who: "rank 1", or "the first process".
        error: the last line of its traceback.
        traceback: all of it.
        late: True when it is told by somebody else than the rank, as a last resort.
    """

    who: str
    error: str
    traceback: str
    late: bool = False


def describe_faults(faults: list[Fault]) -> str:
    """Return who raised first, and who failed because of it."""
    first, *rest = faults
    others = {fault.who: fault.error.splitlines()[0] for fault in reversed(rest) if fault.who != first.who}
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
            f"{who} ended with exit status {status} after step {step} and raised nothing: something in it called exit."
        )
    name = signal.Signals(-status).name
    if status == -signal.SIGKILL:
        advice = (
            "Most often the system does this when memory runs out (`dmesg` or the job's log says so): try a smaller "
            "--global-batch, fewer --devices, or --num-workers 0."
        )
    else:
        advice = "That comes from C++ or CUDA code rather than from Python: its own message, if any, is above."
    return f"{who} was killed by signal {-status} ({name}) after step {step}. {advice} {RESUME}"


def describe_silence(silent: dict[int, Mark], timeout_s: float, missing: int) -> str:
    """Return which ranks gave no sign of life, since when, and where they stood.

    Args:
        silent: the last mark of each silent rank; its count is 0 for one that never began to train.
        timeout_s: how long a rank may be silent.
        missing: how many ranks were never heard of.
    """
    told = [
        f"rank {rank} has been silent since {time.strftime('%H:%M:%S', time.localtime(mark.time))}, "
        f"for {time.time() - mark.time:.0f} s: {mark.where}"
        for rank, mark in silent.items()
    ]
    told += [f"{missing} of the ranks of this machine never started"] if missing else []
    end = f"--timeout {timeout_s:g} ended the run. If it was only slow, pass a longer --timeout."
    return f"{'; '.join(told)}. {end} {RESUME}"
