"""Say what is outdated in files, as diffs with reasons. Exit status: 0 nothing, 1 something, 2 a
file is not read.
"""

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from course_utils.old_code.explain import KINDS, Explanation, Unreadable, explain
from course_utils.text import show_result


def main(arguments: list[str] | None = None) -> int:
    """Return 0 where nothing is outdated, 1 where something is, and 2 where a file cannot be
    read.
    """
    parser = argparse.ArgumentParser(prog="python -m course_utils.old_code", description=__doc__)
    parser.add_argument(
        "files", nargs="+", metavar="file", help=f"{KINDS}; - reads what is piped in"
    )
    parser.add_argument(
        "--write", action="store_true", help="change the file; a copy stays beside it as FILE.orig"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the findings and the new text of each file as JSON",
    )
    options = parser.parse_args(arguments)
    return max(_report(name, options) for name in options.files)


def _report(name: str, options: argparse.Namespace) -> int:
    """Print what is outdated in one file, under its name where there are several, and return its
    exit status.
    """
    try:
        found = explain(
            sys.stdin.buffer.read().decode("utf-8-sig", "backslashreplace")
            if name == "-"
            else Path(name)
        )
        if options.write:
            _write(name, found)
    except (Unreadable, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        print(
            f"old_guides needs {error.name}: pip install 'accelerator-course[lessons]'",
            file=sys.stderr,
        )
        return 2
    if options.json:
        findings = [dataclasses.asdict(note) for note in found]
        show_result(json.dumps({"file": name, "findings": findings, "text": found.text}, indent=1))
    else:
        heading = f"{name}:" if len(options.files) > 1 else ""
        show_result("\n".join(filter(None, [heading, found.diff(name), str(found)])))
    return 1 if found.findings else 0


def _write(name: str, found: Explanation) -> None:
    """Write the new text, and the old one beside it, unless nothing changes or an older one is
    there.
    """
    if name == "-":
        raise Unreadable("--write needs a file.")
    path = Path(name)
    old = path.read_bytes()
    new = (b"\xef\xbb\xbf" if old.startswith(b"\xef\xbb\xbf") else b"") + found.text.encode()
    kept = path.with_name(f"{path.name}.orig")
    if new != old and kept.exists():
        raise Unreadable(f"{kept} is there already: move it away first. Nothing was written.")
    if new != old:
        kept.write_bytes(old)
        path.write_bytes(new)


if __name__ == "__main__":
    sys.exit(main())
