"""Add what the lessons need and this machine lacks: `python -m course_lessons.setup [EXTRA]`.

The set-up cell of a lesson runs it on a machine where it has just installed the course alone. pip
gets the version of every package that is here as a constraint, so that it changes none of them, and
looks for wheels beside the notebook and in the data sets of a Kaggle notebook before it asks the
index.
"""

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
KAGGLE = Path("/kaggle/input")


def install(extra: str = "lessons") -> str:
    """Install what an extra of the course lacks here, and return why that failed, or nothing where
    it did not.
    """
    here = subprocess.run(
        [*PIP, "list", "--format=freeze"], capture_output=True, text=True, check=True
    ).stdout
    if "accelerator-course==" not in here:
        return "the course runs from its source: install it with `make lab`"
    with TemporaryDirectory() as scratch:
        constraints = Path(scratch) / "installed.txt"
        constraints.write_text(here, encoding="utf-8")
        folders = {Path.cwd(), *(wheel.parent for wheel in KAGGLE.rglob("*.whl"))}
        near = [f"--find-links={folder}" for folder in sorted(folders)]
        command = [
            *PIP,
            "install",
            "--quiet",
            "--retries=1",
            "--timeout=4",
            f"--constraint={constraints}",
            *near,
        ]
        for index in (["--no-index"], []):
            done = subprocess.run(
                [*command, *index, f"accelerator-course[{extra}]"], capture_output=True, text=True
            )
            if done.returncode == 0:
                return ""
    errors = re.findall(r"^(?:ERROR|error): (.*)", done.stderr, re.MULTILINE)
    return (errors or done.stderr.splitlines() or ["pip did not say why"])[0].rstrip(".")[:300]


if __name__ == "__main__":
    if reason := install(*sys.argv[1:]):
        print(
            f"The course is here, but not all that it needs: {reason}. Nothing that was here has changed."
        )
