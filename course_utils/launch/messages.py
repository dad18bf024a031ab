"""The errors of a launch, tracebacks that a student can read, and how much Lightning prints."""

import logging
import re
import traceback
import warnings
from pathlib import Path

CALLS = re.compile(
    r'\s*File ".*(\w-packages/(pytorch_)?(lightning|torch)/|/launch/(ranks|reporting|sharded)\.py")'
)
OUT_OF_MEMORY = re.compile(
    r"out of memory|can't allocate memory|Cannot allocate memory|MemoryError", re.IGNORECASE
)


class LaunchError(ValueError):
    """A request that cannot be met, with what was found and what to do."""


class RunError(Exception):
    """A run that failed after it had started: a rank raised, was killed, or fell silent."""


def short_traceback(error: BaseException) -> str:
    """Return the traceback of an error with the calls inside of Lightning and torch counted instead
    of listed.

    Files in the working folder are named without it. The innermost call of each traceback stays: it
    raised the error.
    """
    blocks = traceback.format_exception(error)  # a heading, a block for each call, the error itself
    kept, skipped = [], 0
    for block, following in zip(blocks, [*blocks[1:], ""], strict=True):
        if CALLS.match(block) and following.lstrip().startswith("File "):
            skipped += 1
            continue
        if skipped:
            kept.append(f"  ... {skipped} calls inside of Lightning and torch ...\n")
        kept.append(block)
        skipped = 0
    return "".join(kept).replace(f'File "{Path.cwd()}/', 'File "')


def calm_lightning() -> None:
    """Keep Lightning's advertisements and the advice that does not apply to a lesson out of the
    output.
    """
    for name in ("lightning.pytorch", "lightning.fabric", "pytorch_lightning", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    advice = (
        "does not have many workers",
        "directory .* exists and is not empty",
        "number of training batches",
    )
    for message in (*advice, "Trying to infer the `batch_size`"):
        warnings.filterwarnings("ignore", message=f".*{message}")
