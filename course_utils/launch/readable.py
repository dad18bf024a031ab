"""Make what Lightning and torch print readable: fewer messages, shorter tracebacks."""

import logging
import re
import traceback
import warnings
from pathlib import Path

LIBRARY = re.compile(
    r'\s*File ".*[/\\]((site|dist)-packages[/\\](lightning|pytorch_lightning|torch)[/\\]|launch[/\\](fitting|ranks)\.py")'
)


def calm_lightning() -> None:
    """Keep Lightning's advertisements and the advice that does not apply to a lesson out of the output."""
    for name in ("lightning.pytorch", "lightning.fabric", "pytorch_lightning", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for message in ("does not have many workers", "directory .* exists and is not empty", "number of training batches"):
        warnings.filterwarnings("ignore", message=f".*{message}")


def short_traceback(error: BaseException) -> str:
    """Return the traceback of an error with the calls inside of Lightning and torch counted instead of listed.

    Files in the working folder are named without it. The innermost call of each traceback stays, whoever made it: it is
    where the error was raised.
    """
    blocks = traceback.format_exception(error)  # a heading, a block for each call, the error itself
    is_call = [block.lstrip().startswith("File ") for block in blocks] + [False]
    kept, skipped = [], 0
    for index, block in enumerate(blocks):
        if is_call[index] and is_call[index + 1] and LIBRARY.match(block):
            skipped += 1
            continue
        if skipped:
            kept.append(f"  ... {skipped} calls inside of Lightning and torch ...\n")
        kept.append(block)
        skipped = 0
    return "".join(kept).replace(f'File "{Path.cwd()}/', 'File "')
