"""Run every lesson in fresh environments with the packages of hosted notebooks: `make test-matrix`.

For each set of packages: install it without the course, run the set-up cell that all lessons share
with a wheel beside the notebooks, check that no package changed its version, and run the lessons by
`nbval-lax` in a folder outside of the checkout, so that the installed wheel is what they import. It
takes about ten minutes a set on two cores, and up to 8 GB of disk for the set at hand; nothing here
is part of `make test`.

    python tests/matrix/run.py [--sets hosted oldest] [--lessons 0 7] [--home DIR] [--keep] [--json
    FILE]

`--keep` leaves the environments, and a later run with `--keep` takes them up again. Needs uv in the
Python that runs it and the Pythons of the sets (uv finds them).
"""

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LESSON_LIMIT_S = 1200
TOOLS = ("pytest", "nbval")
DARTS = "8 with Darts"
SHOWN = (
    "torch",
    "torch-xla",
    "lightning",
    "pytorch-lightning",
    "numpy",
    "pandas",
    "matplotlib",
    "ipywidgets",
    "ipykernel",
)

# googlecolab/backend-info, 19 August 2026. tools/images.py says when it has moved.
HOSTED = """
    ipywidgets==7.7.1 ipython==7.34.0 ipykernel==6.17.1 pandas==2.2.3 matplotlib==3.10.0 numpy==2.1.3 psutil==5.9.5
    tqdm==4.67.3
"""
# name: the version of Python, and what is installed before the course comes
SETS = {
    "hosted": ("3.13", f"{HOSTED} tensorboard==2.20.0 torch==2.11.0"),
    "hosted-tpu": ("3.13", f"{HOSTED} torch==2.9.0 torch_xla==2.9.0"),
    # Kaggle/docker-python, August 2026.
    "kaggle-tpu": (
        "3.12",
        """torch==2.8.0 torch_xla==2.8.0 pytorch-lightning numpy==2.0.2 pandas==2.2.2 ipywidgets==8.1.5 matplotlib
        tensorboard psutil tqdm""",
    ),
    "newest": (
        "3.13",
        "torch lightning numpy pandas matplotlib ipywidgets ipykernel tensorboard psutil pooch parso tqdm",
    ),
    # The lowest versions that pyproject.toml allows: a test keeps the two in step.
    "oldest": (
        "3.10",
        """torch==2.6.0 lightning==2.4.0 numpy==1.26.0 pandas==2.2.0 matplotlib==3.8.0 ipywidgets==7.7.1
        tensorboard==2.16.2 psutil==5.9.0 pooch==1.8.0 parso==0.8.3 tqdm==4.66.0 ipython==7.34.0 ipykernel==6.17.1""",
    ),
}


@dataclass(frozen=True)
class Outcome:
    """What one lesson did in one set."""

    passed: bool
    seconds: float


def call(*command, **options) -> subprocess.CompletedProcess:
    """Run a program and return its result with what it printed, or stop with what it printed when
    it fails.
    """
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, **options
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done


def build_wheel(folder: Path) -> Path:
    """Build the course's wheel and return it."""
    call(sys.executable, "-m", "uv", "build", "--wheel", "--out-dir", folder, ROOT)
    return next(folder.glob("*.whl"))


def recipe(name: str) -> str:
    """Return what a set is made of, one thing a line: the version of Python, then packages."""
    python_version, packages = SETS[name]
    return "\n".join([python_version, *packages.split(), *TOOLS])


def interpreter(version: str) -> str:
    """Return one of pyenv's Pythons, or the version itself, which uv looks for elsewhere and else
    downloads.
    """
    found = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    return str(found[-1]) if found else version


def build_environment(home: Path) -> Path:
    """Make an environment with pip and the packages of the set that the folder is named after, and
    return its Python.

    One that was kept is taken up again. Its mark is away until `restore` puts it back: an
    interrupted run leaves none.
    """
    python, mark = home / "env" / "bin" / "python", home / "set.txt"
    if not mark.exists() or mark.read_text() != recipe(home.name):
        python_version, *packages = recipe(home.name).splitlines()
        shutil.rmtree(home / "env", ignore_errors=True)
        home.mkdir(parents=True, exist_ok=True)
        call(
            sys.executable,
            "-m",
            "uv",
            "venv",
            "--seed",
            "--quiet",
            "--python",
            interpreter(python_version),
            home / "env",
        )
        install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python]
        call(*install, *packages)
    mark.unlink(missing_ok=True)
    return python


def frozen(python: Path) -> dict[str, str]:
    """Return what `pip freeze` says, as name: version, without the course."""
    lines = call(python, "-m", "pip", "freeze", "--all").stdout.splitlines()
    pairs = (re.split(r"==| @ ", line, maxsplit=1) for line in lines)
    return {
        name.lower().replace("_", "-"): version
        for name, version in pairs
        if "accelerator" not in name
    }


def setup_cell() -> str:
    """Return the set-up cell, the first code cell of every lesson."""
    cells = json.loads(LESSONS[0].read_text(encoding="utf-8"))["cells"]
    return "".join(next(cell for cell in cells if cell["cell_type"] == "code")["source"])


def set_up(python: Path, folder: Path, wheel: Path) -> str:
    """Run the set-up cell beside copies of the lessons and the wheel; return the line that it
    prints.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "notebooks", folder, ignore=shutil.ignore_patterns(".*"))
    shutil.copy(wheel, folder)
    (folder / "setup.ipy").write_text(setup_cell(), encoding="utf-8")
    environment = bare_environment() | {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    said = call(python, "-m", "IPython", "setup.ipy", cwd=folder, env=environment).stdout.strip()
    where = "from importlib.util import find_spec; print(find_spec('course_utils').origin)"
    origin = call(python, "-c", where, cwd=folder, env=bare_environment()).stdout.strip()
    if not Path(origin).is_relative_to(python.parent.parent):
        sys.exit(
            f"The lessons would import {origin}, and not the course that the set-up cell installed."
        )
    return said


def bare_environment() -> dict[str, str]:
    """Return the environment variables without those that would let the checkout or another set
    in.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "VIRTUAL_ENV", "COURSE_DEVICE")
    }


def run_lesson(python: Path, lesson: Path, log: Path) -> Outcome:
    """Run one lesson by nbval-lax and keep what was printed."""
    command = [
        python,
        "-m",
        "pytest",
        "--nbval-lax",
        "--nbval-current-env",
        "-q",
        "-p",
        "no:cacheprovider",
        lesson.name,
    ]
    started = time.perf_counter()
    with log.open("w") as file:
        try:
            done = subprocess.run(
                [str(word) for word in command],
                cwd=lesson.parent,
                env=bare_environment(),
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=LESSON_LIMIT_S,
            )
            passed = done.returncode == 0
        except subprocess.TimeoutExpired:
            passed = False
    return Outcome(passed, round(time.perf_counter() - started, 1))


def restore(home: Path, before: dict[str, str], after: dict[str, str]) -> None:
    """Uninstall what was added to an environment, and mark it as fit to be taken up again."""
    python, added = (
        home / "env" / "bin" / "python",
        ["accelerator-course", *(after.keys() - before.keys())],
    )
    call(sys.executable, "-m", "uv", "pip", "uninstall", "--quiet", "--python", python, *added)
    if frozen(python) == before:
        (home / "set.txt").write_text(recipe(home.name))


def try_set(name: str, home: Path, wheel: Path, lessons: list[Path]) -> dict:
    """Build one set, set it up, run the lessons in it, and return the row of the table."""
    python = build_environment(home)
    before = frozen(python)
    said = set_up(python, home / "notebooks", wheel)
    versions = frozen(python)
    print(f"{name}: {said}", flush=True)
    outcomes = {}
    for lesson in lessons:
        outcomes[lesson.stem] = run_lesson(
            python, home / "notebooks" / lesson.name, home / f"{lesson.stem}.log"
        )
        print(f"  {lesson.stem}: {shown(outcomes[lesson.stem])}", flush=True)
    darts = with_darts(python, home, [lesson for lesson in lessons if "darts" in lesson.stem])
    after = frozen(python)
    changed = {
        each: [version, after.get(each)]
        for each, version in before.items()
        if after.get(each) != version
    }
    print(f"  {DARTS}: {shown(darts)}\n  changed: {changed or 'nothing'}", flush=True)
    restore(home, before, after)
    return {
        "python": SETS[name][0],
        "said": said,
        "versions": {each: versions[each] for each in SHOWN if each in versions},
        "changed": changed,
        "lessons": {stem: vars(outcome) for stem, outcome in outcomes.items()},
        DARTS: darts and vars(darts),
    }


def with_darts(python: Path, home: Path, lessons: list[Path]) -> Outcome | None:
    """Add Darts as lesson 8 says, and run that lesson again; return None where that did not add
    it.
    """
    add = [python, "-m", "course_lessons.setup", "darts"]
    for lesson in lessons:
        done = subprocess.run(
            add, cwd=home / "notebooks", env=bare_environment(), capture_output=True, text=True
        )
        print(f"  {done.stdout.strip()}", flush=True)
        if done.returncode == 0 and "darts" in frozen(python):
            return run_lesson(
                python, home / "notebooks" / lesson.name, home / f"{lesson.stem}_with_darts.log"
            )
    return None


def shown(outcome: Outcome | None) -> str:
    """Return one cell of the table."""
    return (
        f"{'passed' if outcome.passed else 'FAILED'}, {outcome.seconds:.0f} s" if outcome else "-"
    )


def table(rows: dict[str, dict], lessons: list[Path]) -> str:
    """Return the rows as a Markdown table."""
    heads = [
        "set",
        "versions",
        "set-up changed",
        *(lesson.stem[:2].lstrip("0") or "0" for lesson in lessons),
        DARTS,
    ]
    lines = [" | ".join(heads), " | ".join("---" for _ in heads)]
    for name, row in rows.items():
        versions = [
            f"Python {row['python']}",
            *(f"{each} {value}" for each, value in row["versions"].items()),
        ]
        outcomes = [row["lessons"][lesson.stem] for lesson in lessons] + [row[DARTS]]
        cells = [shown(outcome and Outcome(**outcome)) for outcome in outcomes]
        lines.append(
            " | ".join([name, ", ".join(versions), ", ".join(row["changed"]) or "nothing", *cells])
        )
    return "\n".join(f"| {line} |" for line in lines)


def is_fine(row: dict) -> bool:
    """Say whether every lesson passed and no version was changed."""
    outcomes = [*row["lessons"].values(), *filter(None, [row[DARTS]])]
    return not row["changed"] and all(outcome["passed"] for outcome in outcomes)


def arguments() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--sets", nargs="+", choices=SETS, default=list(SETS), metavar="SET", help=", ".join(SETS)
    )
    parser.add_argument("--lessons", nargs="+", type=int, default=range(len(LESSONS)), metavar="N")
    parser.add_argument(
        "--home", type=Path, default=Path("build/matrix"), help="where environments and logs go"
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="leave the environments, and take up those that are left",
    )
    parser.add_argument("--json", type=Path, help="write the results here too")
    return parser.parse_args()


def main() -> int:
    """Try the sets one after the other, print the table, and return 1 if anything failed or
    changed.
    """
    asked = arguments()
    home, lessons = asked.home.resolve(), [LESSONS[number] for number in asked.lessons]
    home.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(home / "wheel", ignore_errors=True)
    wheel, rows = build_wheel(home / "wheel"), {}
    for name in asked.sets:
        if not asked.keep:
            shutil.rmtree(home / name, ignore_errors=True)
        rows[name] = try_set(name, home / name, wheel, lessons)
        if not asked.keep:
            shutil.rmtree(home / name / "env")
    found = {
        "date": datetime.date.today().isoformat(),
        "system": platform.platform(terse=True),
        "sets": rows,
    }
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n")
    print(f"\n{found['date']}, {found['system']}\n\n{table(rows, lessons)}")
    return 0 if all(map(is_fine, rows.values())) else 1


if __name__ == "__main__":
    sys.exit(main())
