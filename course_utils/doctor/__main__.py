"""The command line: `python -m course_utils.doctor`."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from course_utils.doctor import LIMIT_S, diagnose
from course_utils.hardware import KINDS
from course_utils.text import show_result

# How it was started: as a module, or as the one file that `make doctor.pyz` makes.
PROGRAM = "-m course_utils.doctor" if Path(__file__).exists() else "doctor.pyz"


def main() -> int:
    """Print the report; return 0 when at least one family that was asked for works, 1 otherwise."""
    about = "Why is an accelerator missing or unusable here, and what is the fix?"
    status = "exit status: 0 if at least one family that was examined works, 1 if none does."
    parser = argparse.ArgumentParser(prog=f"python {PROGRAM}", description=about, epilog=status)
    parser.add_argument(
        "--require",
        action="append",
        choices=KINDS,
        help="examine only this family; may be repeated",
    )
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="print JSON, for scripts")
    forms.add_argument(
        "--report", action="store_true", help="print Markdown to paste into an issue, without names"
    )
    about_limit = "seconds for a step (default 10; three times that for imports)"
    parser.add_argument("--limit", type=float, default=LIMIT_S, help=about_limit)
    asked = parser.parse_args()
    if not 0 < asked.limit < 10**6:
        parser.error(f"argument --limit: {asked.limit:g} is not a number of seconds above 0")
    report = diagnose(tuple(asked.require or KINDS), limit_s=asked.limit)
    text = (
        json.dumps(asdict(report), indent=2)
        if asked.json
        else report.to_markdown()
        if asked.report
        else report
    )
    show_result(text)
    return 0 if any(finding.usable for finding in report.findings) else 1


sys.exit(main())
