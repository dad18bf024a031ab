"""Print the result of a command, whatever the terminal or the pipe behind it can take."""

import os
import sys


def show_result(text: object) -> None:
    """Print a command's result safely.

    Characters that the terminal cannot show are escaped, and a closed pipe is ignored. Where the
    result cannot be written, as on a full disk, the program ends with a sentence and status 1.
    """
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        print(text, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # where Python writes the rest at its end
        # a closed pipe, such as `... | head`, has what it wanted
        if not isinstance(error, BrokenPipeError):
            raise SystemExit(f"the result could not be written: {error}") from None
