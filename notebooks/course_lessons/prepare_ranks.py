"""Prepare a lesson whose cells start ranks."""

import os
import warnings
from pathlib import Path

from course_lessons.needs import NO_RANKS, no_copies, what_cells_need

# What torch 2.8 and 2.9 make Python 3.13 say in each process, and Lightning 2.6 torch 2.11.
OF_TORCH = "functools.partial will be a method descriptor"
OF_LIGHTNING = "`isinstance(treespec, LeafSpec)` is deprecated"


def prepare_ranks(folder: str) -> None:
    """Make the folder of a lesson's scripts, and let cells begin with `%%needs ranks` or `copies`.

    What starts in a cell is quiet about what a reader cannot change.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    what_cells_need(ranks=NO_RANKS, copies=no_copies())
    for message in ("This DataLoader will create", OF_TORCH, OF_LIGHTNING):
        warnings.filterwarnings("ignore", message=message)
    kept = os.environ.get("PYTHONWARNINGS", "")
    if OF_TORCH not in kept:
        os.environ["PYTHONWARNINGS"] = f"{kept},ignore:{OF_TORCH}".removeprefix(",")
    os.environ["PYTHON_COLORS"] = "0"  # errors of scripts are plain text, also on Python 3.13
