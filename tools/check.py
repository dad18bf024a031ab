"""Lint, types and the quick tests: `make check`, or without make `python tools/check.py`.

`python tools/check.py lint` leaves the tests out. The workflows call this too.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINT = [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]]
QUICK = "not process and not slow and not browser and not notebook and not long"
TESTS = [["pytest", "-n", "2", "-m", QUICK, "tests"]]


def main(*words: str) -> int:
    """Run each command, stop at the first that fails, and return its status."""
    os.environ.setdefault("MYPY_CACHE_DIR", str(Path(sys.prefix) / "mypy"))
    for command in LINT if words == ("lint",) else LINT + TESTS:
        if status := subprocess.run([sys.executable, "-m", *command], cwd=ROOT).returncode:
            return status
    return 0


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["lint"]):
        sys.exit("usage: python tools/check.py [lint]")
    sys.exit(main(*sys.argv[1:]))
