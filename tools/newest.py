"""Try the course with the packages of this Python, whatever they are: `make newest`.

It runs the tests that need no browser, then every lesson as one file that carries the course, in a
folder with nothing else. `--lessons` runs the lessons alone.
"""

import argparse
import os
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
# What packages announce to each other is no failure here; `make test` knows the pinned ones.
QUIET = ["-W", "ignore::DeprecationWarning", "-W", "ignore::FutureWarning"]
TESTS = ["pytest", "-n", "2", *QUIET, "-m", "not browser and not notebook", "tests"]
EXECUTE = ["jupyter", "nbconvert", "--to", "notebook", "--execute", "--stdout"]
LIMIT = "--ExecutePreprocessor.timeout=1800"


def python(*words: object, **options) -> int:
    """Run this Python in the course's folder, or another, and return its status."""
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, **{"cwd": ROOT, **options}).returncode


def failed_lessons(folder: Path) -> list[str]:
    """Write every lesson as one file, execute each, and return the names of those that failed."""
    if python("tools/standalone.py", "--out", folder, stdout=subprocess.DEVNULL):
        sys.exit("The lessons could not be written as one file each, so none was executed.")
    # the lessons bring their own course and the Python of this environment
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    failed = []
    for lesson in sorted(folder.glob("*.ipynb")):
        print(f"{lesson.name} ...", flush=True)
        words = ["-m", *EXECUTE, LIMIT, lesson.name]
        if python(*words, cwd=folder, env=environment, stdout=subprocess.DEVNULL):
            failed.append(lesson.name)
    return failed


def installed() -> set[tuple[str, str]]:
    """Return every package of this Python with its version."""
    return {(each.metadata["Name"], each.version) for each in distributions()}


def main() -> int:
    """Run what was asked for, say what failed, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lessons", action="store_true", help="leave the tests out")
    tests = 0 if parser.parse_args().lessons else python("-m", *TESTS)
    before = installed()
    with TemporaryDirectory() as folder:
        failed = failed_lessons(Path(folder))
    changed = [" ".join(package) for package in before - installed()]
    print(f"lessons that failed: {', '.join(failed) or 'none'}")
    print(f"packages that a lesson changed: {', '.join(changed) or 'none'}")
    return int(bool(tests or failed or changed))


if __name__ == "__main__":
    sys.exit(main())
