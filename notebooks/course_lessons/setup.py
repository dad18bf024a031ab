"""What the set-up cell of a lesson runs, also as `python -m course_lessons.setup [EXTRA]`.

It adds the packages that the lessons need and this machine lacks, and then draws the picture that
the lesson opens with. pip gets the version of every package that is here as a constraint, so that
it changes none of them, and looks for wheels beside the notebook and in the data sets of a Kaggle
notebook before it asks its index.
"""

import atexit
import importlib
import logging
import os
import shlex
import shutil
import subprocess
import sys
import warnings
import zipfile
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distributions, requires, version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

if TYPE_CHECKING:
    from pandas import DataFrame

    from course_tools.figures import Picture

KAGGLE = Path("/kaggle/input")


def set_up(lesson: str = "", *, extra: str = "lessons") -> "Picture | None":
    """Add what is missing here, and say in one line what was done or what is wrong.

    Args:
        lesson: the name of its file without number and ending, such as "multi_gpu".
        extra: whose packages are added: those of the lessons, or Darts.

    Returns:
        The picture that the lesson opens with, if there is a lesson and nothing is missing.
    """
    use_kernel_python()
    # torch 2.11 says it at the first use of its profiler, and a single recording loses nothing
    warnings.filterwarnings("ignore", message="Warning: Profiler clears events")
    # On a machine without a GPU, the compiler of a CUDA build complains about that.
    logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)
    unpack_wheel()
    missing, unfit = find_missing(requirements(extra))
    if missing:
        names = ", ".join(each.name for each in missing)
        print(f"Adding {names}: this can take some minutes ...", flush=True)
    before = installed()
    problem = install(missing) if missing else ""
    added = dict(installed().items() - before.items())
    said = describe_packages(missing, unfit, added, problem)
    if lesson and not problem:
        said += f"; what this lesson writes goes to {enter_folder(lesson)}"
    print(f"{said}.")
    keep_dollar_signs()
    if problem or not lesson:
        return None
    # Only now, and not by name: where the course was a wheel, it has been unpacked in between.
    importlib.import_module("course_tools.timeline.trace").silence_profiler()
    return importlib.import_module("course_lessons.openings").draw_opening(lesson)


def describe_packages(
    missing: list[Requirement], unfit: list[Requirement], added: dict[str, str], problem: str
) -> str:
    """Return what is here now, what was added, and what is wrong."""
    said = f"Course {importlib.import_module('course_utils').__version__} is here"
    if added:
        said += f"; added: {name_added(added, missing)}"
    if problem:
        said += f", but not {', '.join(each.name for each in missing)}: {problem}"
    for each in unfit:
        said += (
            f", but {each.name} {version(each.name)} does not fit: the lessons need "
            f"{each.name}{each.specifier}, and a cell may fail. It was not changed"
        )
    return said


def enter_folder(lesson: str) -> str:
    """Make a folder for what a lesson writes, work in it from now on, and return its name."""
    name = Path("files", lesson)
    if Path.cwd().parts[-2:] != name.parts:  # the cell may run twice
        name.mkdir(parents=True, exist_ok=True)
        os.chdir(name)
    return name.as_posix()


def keep_dollar_signs() -> None:
    """Let tables of pandas show "$1 to $2", which MathJax would take for a formula.

    pandas' own option writes the class that MathJax 2 knew; JupyterLab's MathJax has another.
    """
    with suppress(ImportError):
        from IPython import get_ipython
        from pandas import DataFrame

        if shell := get_ipython():
            formatter = shell.display_formatter.formatters["text/html"]
            formatter.for_type(DataFrame, html_without_formulas)


def html_without_formulas(table: "DataFrame") -> str:
    """Return the HTML of a table in a box in which MathJax changes nothing."""
    return f'<div class="mathjax_ignore tex2jax_ignore">{table._repr_html_()}</div>'


def unpack_wheel() -> None:
    """Unpack the course for this kernel alone where it is imported out of its wheel.

    A wheel is an archive from which Python can import, but the lessons read files too. Of several
    wheels beside the notebook the newest counts.
    """
    if ".whl" not in __file__:
        return
    wheels = [path for path in sys.path if Path(path).match("accelerator_course-*.whl")]
    newest = max(wheels, key=lambda path: Version(Path(path).name.split("-")[1]))
    folder = mkdtemp(prefix="accelerator-course-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with zipfile.ZipFile(newest) as archive:
        archive.extractall(folder)
    sys.path[:] = [folder, *(path for path in sys.path if path not in wheels)]
    others = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([folder, others] if others else [folder])
    for name in [*sys.modules]:
        if name.partition(".")[0] in ("course_lessons", "course_tools", "course_utils"):
            del sys.modules[name]  # it is imported again, out of the folder


def use_kernel_python() -> None:
    """Let `!python` and `!torchrun` be those of this kernel, whatever Python the shell prefers."""
    folder = str(Path(sys.executable).parent)
    others = [each for each in os.environ.get("PATH", "").split(os.pathsep) if each != folder]
    os.environ["PATH"] = os.pathsep.join([folder, *others])


def requirements(extra: str) -> list[Requirement]:
    """Return what an extra of the course asks for; nothing where it runs from a bare checkout."""
    try:
        lines = requires("accelerator-course") or []
    except PackageNotFoundError:
        return []
    found = [Requirement(line) for line in lines]
    return [each for each in found if not each.marker or each.marker.evaluate({"extra": extra})]


def find_missing(wanted: list[Requirement]) -> tuple[list[Requirement], list[Requirement]]:
    """Return the requirements that are not here, and those of which another version is here."""
    missing, unfit = [], []
    for each in wanted:
        try:
            here = version(each.name)
        except PackageNotFoundError:
            missing.append(each)
            continue
        if not each.specifier.contains(here, prereleases=True):
            unfit.append(each)
    return missing, unfit


def installed() -> dict[str, str]:
    """Return the version of every package that is here."""
    importlib.invalidate_caches()
    found = [(each.metadata["Name"], each.version) for each in distributions()]
    return {name: number for name, number in found if name}


def can_be_pinned(number: str) -> bool:
    """Say whether a version is one that pip can read; Debian's own packages have others."""
    try:
        Version(number)
    except InvalidVersion:
        return False
    return True


def name_added(added: dict[str, str], asked: list[Requirement]) -> str:
    """Return the packages that were asked for with their versions, and how many came with them."""
    names = [each.name for each in asked if each.name in added]
    names += [name for name in ("pip",) if name in added]  # from Python itself: nothing needs it
    text = ", ".join(f"{name} {added[name]}" for name in names)
    others = len(added) - len(names)
    return f"{text} and {others} that they need" if others else text


def install(missing: list[Requirement]) -> str:
    """Install packages and change none, and return why that failed, or nothing."""
    names = [f"{each.name}{each.specifier}" for each in missing]
    with TemporaryDirectory() as scratch:
        constraints = Path(scratch) / "installed.txt"
        pins = [
            f"{name}=={number}\n" for name, number in installed().items() if can_be_pinned(number)
        ]
        constraints.write_text("".join(pins), encoding="utf-8")
        folders = {Path.cwd(), *(wheel.parent for wheel in KAGGLE.rglob("*.whl"))}
        command = install_command()
        if not command:
            where = shlex.quote(sys.executable)
            wanted = shlex.join(names)
            return f"there is no pip here. In a terminal: uv pip install --python {where} {wanted}"
        command += ["--quiet", f"--constraint={constraints}"]
        command += [f"--find-links={folder}" for folder in sorted(folders)]
        for index in (["--no-index"], []):
            done = subprocess.run([*command, *index, *names], capture_output=True, text=True)
            if done.returncode == 0:
                return ""
    return f"{last_error(done.stderr)} ({advise(done.stderr)})"


def install_command() -> list[str]:
    """Return the command that installs into this kernel's environment: pip's, or else uv's.

    uv makes environments without pip. Python brings a pip of its own, if its maker left that in.
    """
    with_pip = [sys.executable, "-m", "pip", "install", "--retries=1", "--timeout=8"]
    with_pip += ["--no-color", "--disable-pip-version-check"]
    if find_spec("pip"):
        return with_pip
    if uv := shutil.which("uv"):
        os.environ |= {"UV_HTTP_TIMEOUT": "8", "UV_HTTP_RETRIES": "1"}
        # a company or a school may have a certificate that only the system knows
        os.environ.setdefault("UV_SYSTEM_CERTS", "1")
        return [uv, "pip", "install", "--color=never", f"--python={sys.executable}"]
    if find_spec("ensurepip"):
        done = subprocess.run([sys.executable, "-m", "ensurepip"], capture_output=True)
        return [] if done.returncode else with_pip
    return []


def last_error(stderr: str) -> str:
    """Return the line in which pip, or uv, says what went wrong."""
    lines = [line for line in stderr.splitlines() if line.strip()] or ["pip did not say why"]
    errors = [line for line in lines if line.lower().startswith("error: ")]
    line = errors[0][len("error: ") :] if errors else lines[-1]
    return line.rstrip(".")[:300]


def advise(stderr: str) -> str:
    """Return what to do where packages could not be installed."""
    if any(sign in stderr for sign in ("CERTIFICATE_VERIFY_FAILED", "invalid peer certificate")):
        return (
            "this network has a certificate of its own: name its file in the variables PIP_CERT "
            "and SSL_CERT_FILE, and run this cell again"
        )
    signs = ("Retrying (", "from versions: none", "Request failed after")  # the last is uv's
    offline = any(sign in stderr for sign in signs)
    if offline and KAGGLE.exists():
        return "switch the internet on under Settings > Internet, and run this cell again"
    if offline:
        return "connect to a network, or put the wheels of what is missing beside this notebook"
    return "nothing that was here has changed"


if __name__ == "__main__":
    set_up(extra=sys.argv[1] if sys.argv[1:] else "lessons")
