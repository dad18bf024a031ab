"""The command line: `python -m course_tools.doctor`."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from course_tools.doctor import LIMIT_S, diagnose
from course_utils.hardware import KINDS
from course_utils.text import show_result

# How it was started: as a module, or as the one file that `make doctor.pyz` makes.
PROGRAM = "-m course_tools.doctor" if Path(__file__).exists() else "doctor.pyz"


def main() -> int:
    """Print the report; return 0 when at least one of the requested kinds works, 1 otherwise."""
    parser = argparse.ArgumentParser(
        prog=f"python {PROGRAM}",
        description="Why is an accelerator missing or unusable here, and what is the fix?",
        epilog="exit status: 0 if at least one examined kind of device works, 1 if none does.",
    )
    require = "examine only this kind of device; may be repeated"
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
    report = diagnose(tuple(options.require or KINDS), limit_s=options.limit)
    if options.json:
        show_result(json.dumps(asdict(report), indent=2))
    elif options.report:
        show_result(report.to_markdown())
        print("Check this before you paste it: it may name you or your machine.", file=sys.stderr)
    else:
        show_result(report)
    return 0 if any(finding.usable for finding in report.findings) else 1


sys.exit(main())
