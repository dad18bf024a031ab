"""Say what is outdated in files, as a diff with reasons.

Exit status: 0 where nothing is outdated, 1 where something is, 2 where a file cannot be read.
"""

import argparse
import os
import sys
from pathlib import Path

READABLE = "Python (.py), notebooks (.ipynb), Markdown, reST or plain text"


def main(arguments: list[str] | None = None) -> int:
    """Report on each file and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m course_tools.old_code", description=__doc__)
    help_text = f"{READABLE}; the message of an error in quotes; - reads standard input"
    parser.add_argument("files", nargs="+", metavar="FILE", help=help_text)
    parser.add_argument("--write", action="store_true", help="change the files")
    options = parser.parse_args(arguments)
    several = len(options.files) > 1
    return max(_report(name, options.write, several) for name in options.files)


def _report(name: str, write: bool, several: bool) -> int:
    """Print what is outdated in one file and return its exit status."""
    # Here, so that --help does not wait for PyTorch.
    from course_tools.old_code.explain import explain
    from course_tools.old_code.read_text import Unreadable
    from course_utils.text import show_result

    source: str | Path = Path(name)
    if name == "-":
        source = sys.stdin.read()
    elif " " in name and not os.path.exists(name):
        source = name  # the message of an error
    try:
        found = explain(source)
        if write and isinstance(source, Path):
            source.write_bytes(found.text.encode())  # with the ends of lines as they were
    except (Unreadable, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        needed = "pip install 'accelerator-course[lessons]'"
        print(f"This tool needs {error.name}: {needed}", file=sys.stderr)
        return 2
    pieces = [f"{name}:" if several else "", found.diff(name), str(found)]
    show_result("\n".join(piece for piece in pieces if piece))
    return 1 if found.findings else 0


if __name__ == "__main__":
    sys.exit(main())
