"""Say what is outdated in files: the line, what stands there, what to write today, and why.

Exit status: 0 where nothing is outdated, 1 where something is, 2 where a file cannot be read.
"""

import argparse
import os
import sys
from pathlib import Path

READABLE = "Python (.py), notebooks (.ipynb), Markdown or plain text"


def main(arguments: list[str] | None = None) -> int:
    """Report on each file and return the exit status."""
    program = "python -m course_tools.old_code"
    example = f"example: {program} train.py notebook.ipynb"
    parser = argparse.ArgumentParser(prog=program, description=__doc__, epilog=example)
    help_text = f"{READABLE}; the message of an error in quotes; - reads standard input"
    parser.add_argument("files", nargs="+", metavar="FILE", help=help_text)
    options = parser.parse_args(arguments)
    several = len(options.files) > 1
    return max(_report(name, several) for name in options.files)


def _report(name: str, several: bool) -> int:
    """Print what is outdated in one file and return its exit status."""
    # Here, so that --help does not wait for PyTorch.
    try:
        from course_tools.old_code.explanation import explain
        from course_tools.old_code.read_text import Unreadable, whole_text
    except ModuleNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    from course_utils.show_result import show_result

    is_message = " " in name and not os.path.exists(name)
    try:
        if name == "-":
            found = explain(whole_text(sys.stdin.buffer, "standard input"))
        else:
            found = explain(name if is_message else Path(name))
    except Unreadable as error:
        print(error, file=sys.stderr)
        return 2
    show_result(f"{name}:\n{found}" if several else found)
    return 1 if found.findings else 0


if __name__ == "__main__":
    sys.exit(main())
