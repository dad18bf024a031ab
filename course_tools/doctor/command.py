"""The command line: `python -m course_tools.doctor`."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from course_tools.doctor.examine import LIMIT_S, diagnose
from course_tools.private import everything_without_secrets
from course_utils.kinds import KINDS
from course_utils.show_result import show_result

# How it was started: as a module, or as the one file that `make doctor.pyz` makes.
PROGRAM = "-m course_tools.doctor" if Path(__file__).exists() else "doctor.pyz"


def main() -> int:
    """Print the report; return 0 when all that was required works, 1 otherwise."""
    parser = argparse.ArgumentParser(
        prog=f"python {PROGRAM}",
        description="Why is an accelerator missing or unusable here, and what is the fix?",
        epilog="exit status: 0 if every kind that --require names works, or without --require if "
        "PyTorch works, on the CPU at least; 1 if not; 2 if the command itself is wrong. If Python "
        "dies before anything is printed, start it as: python -P -m course_tools.doctor. "
        f"Example: python {PROGRAM} --require cuda",
    )
    require = "examine this kind of device alone, and fail if it does not work; may be repeated"
    parser.add_argument("--require", action="append", choices=KINDS, help=require)
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="print JSON, for scripts")
    markdown = "print Markdown for an issue; read it before you paste it"
    forms.add_argument("--report", action="store_true", help=markdown)
    limit = f"seconds for each child process (default {LIMIT_S:g})"
    parser.add_argument("--limit", type=float, default=LIMIT_S, help=limit)
    options = parser.parse_args()
    if not 0 < options.limit < 10**6:
        parser.error(f"argument --limit: {options.limit:g} is not a number of seconds above 0")
    kinds = tuple(dict.fromkeys(options.require or KINDS))
    examined = "1 kind" if len(kinds) == 1 else f"{len(kinds)} kinds"
    print(f"Examining {examined} of device, for {options.limit:g} s at most ...", file=sys.stderr)
    report = diagnose(kinds, limit_s=options.limit)
    if options.json:
        show_result(json.dumps(everything_without_secrets(asdict(report)), indent=2))
    elif options.report:
        show_result(report.to_markdown())
        print("Check this before you paste it: it may name you or your machine.", file=sys.stderr)
    else:
        show_result(report)
    usable = [finding.usable for finding in report.findings]
    return 0 if (all(usable) if options.require else any(usable)) else 1
