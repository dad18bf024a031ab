"""Print what a command found, whatever the terminal can show and whether or not anybody still reads."""

from __future__ import annotations

import os
import sys


def show_result(text: object) -> None:
    """Print a text: what the terminal's encoding lacks as an escape, and without complaint where `head` has left."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        print(text, flush=True)
    except BrokenPipeError:  # the reader of `... | head` has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
