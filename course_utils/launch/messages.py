"""The errors of a launch, the sentences that say why a run failed, and how much Lightning prints."""

import logging
import re
import signal
import time
import traceback
import warnings
from pathlib import Path
from typing import NamedTuple

CALLS = re.compile(r'\s*File ".*((site|dist)-packages/(pytorch_)?(lightning|torch)/|/launch/(ranks|sharded)\.py")')
OUT_OF_MEMORY = re.compile(r"out of memory|can't allocate memory|Cannot allocate memory|MemoryError", re.IGNORECASE)
ASKED_TO_STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class LaunchError(ValueError):
    """A request that cannot be met, with what was found and what to do."""


class RunError(Exception):
    """A run that failed after it had started: a rank raised, was killed, or fell silent."""


class Heartbeat(NamedTuple):
    """The last sign of life of one rank."""

    time_s: float  # by the clock of `time.monotonic`
    number: int = 0  # how many there were; ranks that train together are never more than one step apart
    step: int = 0  # training steps that it has finished
    where: str = "it has not begun to train"


class Fault(NamedTuple):
    """An exception of one process."""

    who: str  # such as "rank 1"
    error: str  # the last line of the traceback
    traceback: str
    indirect: bool = False  # reported by another process than the rank


def is_out_of_memory(error: str) -> bool:
    """Say whether an error's text is one that PyTorch, NumPy or Python raise when memory runs out."""
    return bool(OUT_OF_MEMORY.search(error))


def describe_faults(faults: list[Fault]) -> str:
    """Return who raised first, and who failed because of it."""
    first, *rest = faults
    others = {fault.who: fault.error.partition("\n")[0] for fault in reversed(rest) if fault.who != first.who}
    then = "".join(f" Then {who} failed, most likely because of it: {error}" for who, error in others.items())
    error = first.error.partition("\n")[0]  # the rest stands in its traceback
    return f"{first.who} raised {error}{'' if error.endswith('.') else '.'}{then}"


def describe_death(who: str, status: int, step: int) -> str:
    """Return what ended a process that raised nothing, and what to try.

    Args:
        who: such as "rank 1".
        status: its exit status, or minus the signal that ended it, as in `subprocess`.
        step: the steps that it had finished.
    """
    if status >= 0:
        early = f"{who} ended with exit status {status} after step {step} and raised nothing"
        return f"{early}, before the training was done: something in it called exit, or it was interrupted."
    advice = "That comes from C++ or CUDA code rather than from Python: its own message, if any, is above."
    if -status in ASKED_TO_STOP:
        advice = "A person or another program asked it to stop."
    elif -status == signal.SIGKILL:
        advice = (
            "Most often the system does this when memory runs out (`dmesg` or the job's log says so): try a smaller "
            "--global-batch, fewer --devices, or --num-workers 0."
        )
    names = {number.value: f" ({number.name})" for number in signal.Signals}
    return f"{who} was killed by signal {-status}{names.get(-status, '')} after step {step}. {advice}"


def describe_silence(silent: dict[str, Heartbeat], limit_s: float, missing: int) -> str:
    """Return which ranks gave no sign of life, since when, and where they stood.

    Args:
        silent: the last heartbeat of each silent rank; its count is 0 for one that never began to train.
        limit_s: how long a rank may be silent.
        missing: how many ranks never started.
    """
    reasons = []
    for who, beat in silent.items():
        silent_s = time.monotonic() - beat.time_s
        since = time.strftime("%H:%M:%S", time.localtime(time.time() - silent_s))
        after = f"after step {beat.step}, " * (beat.step > 0)
        reasons.append(f"{who} has been silent since {since}, for {silent_s:.0f} s: {after}{beat.where}")
    reasons += [f"{missing} of the ranks of this machine never started"] if missing else []
    advice = f"The limit of {limit_s:g} s ended the run. If it was only slow, pass a longer --timeout."
    return f"{'; '.join(reasons)}. {advice}"


def short_traceback(error: BaseException) -> str:
    """Return the traceback of an error with the calls inside of Lightning and torch counted instead of listed.

    Files in the working folder are named without it. The innermost call of each traceback stays: it raised the error.
    """
    blocks = traceback.format_exception(error)  # a heading, a block for each call, the error itself
    is_call = [block.lstrip().startswith("File ") for block in blocks] + [False]
    kept, skipped = [], 0
    for index, block in enumerate(blocks):
        if is_call[index] and is_call[index + 1] and CALLS.match(block):
            skipped += 1
            continue
        if skipped:
            kept.append(f"  ... {skipped} calls inside of Lightning and torch ...\n")
        kept.append(block)
        skipped = 0
    return "".join(kept).replace(f'File "{Path.cwd()}/', 'File "')


def calm_lightning() -> None:
    """Keep Lightning's advertisements and the advice that does not apply to a lesson out of the output."""
    for name in ("lightning.pytorch", "lightning.fabric", "pytorch_lightning", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for message in ("does not have many workers", "directory .* exists and is not empty", "number of training batches"):
        warnings.filterwarnings("ignore", message=f".*{message}")
