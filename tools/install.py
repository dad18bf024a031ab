"""Build the course's environment: `python3 tools/install.py .venv`, or with `test` at the end.

With `newest` it takes the newest release of every package, in place of those of constraints.txt.

uv installs the packages, and brings a Python where this one does not fit; where uv cannot be had,
pip does it. Without an NVIDIA driver torch's CPU build is tried first: it is a tenth of the size,
but it lies on an index that some networks block.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINNED = ["-c", ROOT / "constraints.txt"]
NEWEST = ["--upgrade", "--override", ROOT / "tools" / "newest.txt"]
UV = "uv==0.13.8"
FITS = ">=3.11,<3.14"  # torch_xla has no release for a later Python
IMPATIENT = {"UV_HTTP_TIMEOUT": "10", "UV_HTTP_RETRIES": "1"}
PIP = ["-m", "pip", "install", "--disable-pip-version-check"]
# Without this, JupyterLab asks in a window over the lesson whether to show news.
SETTINGS = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}}
SIGN_OF_LIFE_S = 20
OURS = "made-by-the-course"  # a file in each environment that is made here
ADVICE = "make lab VENV=$HOME/course-env LESSONS=$HOME/my-lessons"

# What tests compare with: networks of others, and what transformers itself imports.
NETWORKS = ["timm", "torchvision", "transformers", "huggingface_hub", "tokenizers"]
NETWORKS += ["safetensors", "regex", "httpx2", "httpcore2", "truststore"]


def run(*command, quiet: bool = False, **variables) -> str:
    """Run a command, and return why it failed in one line, or nothing where it ended well."""
    words = [str(word) for word in command]
    env = {**os.environ, **variables}
    try:
        done = subprocess.run(words, capture_output=quiet, text=True, env=env)
    except OSError as error:
        return f"{words[0]} does not start: {error.strerror}"
    if done.returncode == 0:
        return ""
    said = (done.stderr or "").strip().splitlines() or [f"status {done.returncode}"]
    return re.sub(r"^\s*(caused by|cause|error): ", "", said[-1], flags=re.IGNORECASE)[:200]


def run_long(home: Path, *command) -> bool:
    """Run a command that loads a lot, show now and then that it lives, and say if it ended well."""
    started, free = time.monotonic(), shutil.disk_usage(home).free
    process = subprocess.Popen([str(word) for word in command])
    while True:
        try:
            return process.wait(SIGN_OF_LIFE_S) == 0
        except subprocess.TimeoutExpired:
            written = max(0, free - shutil.disk_usage(home).free) / 1e9
            minutes = (time.monotonic() - started) / 60
            print(f"... {written:.1f} GB of disk filled so far, {minutes:.1f} minutes", flush=True)


def installed(home: Path, name: str) -> list[Path]:
    """Return what an environment holds under a name such as "torch" among its packages."""
    folders = ("lib/python*/site-packages", "Lib/site-packages")  # the second on Windows
    return [path for folder in folders for path in home.glob(f"{folder}/{name}")]


def size_of(home: Path) -> str:
    """Return how many packages an environment holds, and their size."""
    packages = len(installed(home, "*.dist-info"))
    files = (path.lstat() for path in home.rglob("*"))
    return f"{packages} packages, {sum(file.st_size for file in files) / 1e9:.1f} GB in {home}"


def python_in(home: Path) -> Path:
    """Return the Python of an environment."""
    return home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def claim(home: Path) -> None:
    """Mark a folder that is empty, or not there yet, as one that this program may empty again."""
    if not home.exists() or not any(home.iterdir()):
        home.mkdir(parents=True, exist_ok=True)
        (home / OURS).touch()


def make_with_venv(home: Path, *keep: str) -> None:
    """Make an environment anew with this Python; what stands in it under a name of `keep` stays."""
    claim(home)
    if not any(home.glob("ready-*")) and not (home / OURS).exists():
        sys.exit(
            f"{home} holds files of others, and would be emptied. Choose a new folder: {ADVICE}"
        )
    for part in home.iterdir():
        if part.name in (OURS, *keep):
            continue
        remove = shutil.rmtree if part.is_dir() and not part.is_symlink() else os.unlink
        remove(part)
    try:
        # A copy of Apple's or of Homebrew's Python does not start; `python -m venv` links it too.
        venv.create(home, with_pip=True, symlinks=os.name != "nt")
    except subprocess.CalledProcessError as error:
        why = f"{error.cmd[0]} ended with status {error.returncode}"
        sys.exit(f"{sys.executable} can make no environment ({why}): install uv, and try again.")


def find_uv(home: Path) -> list:
    """Return the command that starts uv, which is installed beside the environment if need be."""
    if found := shutil.which("uv"):
        return [found]
    if find_spec("ensurepip") is None:
        sys.exit("Install uv first, or on Debian and Ubuntu the package python3-venv.")
    python = python_in(home / "uv")
    if run(python, "-m", "uv", "--version", quiet=True):
        make_with_venv(home / "uv")
        if run(python, *PIP, "--quiet", "--retries=1", UV, quiet=True):
            return []
    return [python, "-m", "uv"]


def make_environment(home: Path, uv: list, *, this_python: bool = False) -> None:
    """Make an empty environment, with this Python or, where it does not fit, with one from uv."""
    version = sys.version_info[:2]
    runs = (3, 11) <= version < (3, 15)
    wanted = sys.executable if this_python or (3, 11) <= version < (3, 14) else FITS
    make = [*uv, "venv", "--quiet", "--seed", "--allow-existing", home, "--python", wanted]
    why = "uv is not here"
    if uv and (runs or not this_python) and not (why := run(*make, quiet=True)):
        return
    if not runs:
        sys.exit(
            f"The course needs a Python from 3.11 to 3.14, and none could be had ({why}). "
            f"{sys.executable} is {version[0]}.{version[1]}: install another, and try with that."
        )
    if version >= (3, 14) and not this_python:
        print(f"No Python before 3.14 could be had ({why}): XLA is left out.", flush=True)
    make_with_venv(home, "uv")  # uv may have left a part of one


def wants_cpu_build() -> bool:
    """Say whether torch's default build, for CUDA, would be larger than this machine needs."""
    driver = shutil.which("nvidia-smi") or Path("/proc/driver/nvidia/version").exists()
    return (platform.system(), platform.machine()) == ("Linux", "x86_64") and not driver


def settle_xla(python: Path, xla: Path, uninstall: list) -> None:
    """Try torch_xla, help it to find Python's library, or else leave it out and say so."""
    if not (why := run(python, "-c", "import torch_xla", quiet=True)):
        return
    code = "from course_utils.hardware.libpython import load_libpython as f; print(f() or '')"
    found = subprocess.run([python, "-c", code], cwd=ROOT, capture_output=True, text=True)
    helper = xla.parent / "accelerator_course_libpython.pth"  # Python runs its line at each start
    helper.write_text(
        f"import ctypes; ctypes.CDLL({found.stdout.strip()!r}, mode=ctypes.RTLD_GLOBAL)\n"
    )
    if found.stdout.strip() and not run(python, "-c", "import torch_xla", quiet=True):
        return
    helper.unlink()
    run(*uninstall, "torch_xla", quiet=True)
    print(f"XLA is left out, because torch_xla does not load here ({why}).", flush=True)
    if package := re.search(r"libpython[\d.]+\d", why):
        print(
            f"Lesson 5 needs it: `sudo apt install {package[0]}`, then `make -B env`.", flush=True
        )


def quiet_lab(home: Path | str) -> None:
    """Let an environment's JupyterLab not ask about news; settings that are there already stay."""
    settings = Path(home, "share", "jupyter", "lab", "settings", "overrides.json")
    settings.parent.mkdir(parents=True, exist_ok=True)
    if not settings.exists():
        settings.write_text(json.dumps(SETTINGS), encoding="utf-8")


def commands(python: Path, uv: list, *, newest: bool) -> tuple[list, list]:
    """Return how to install a package in an environment, and how to take one out."""
    install, uninstall = [python, *PIP, "--quiet"], [python, "-m", "pip", "uninstall", "--yes"]
    if uv:
        install = [*uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", python]
        uninstall = [*uv, "pip", "uninstall", "--quiet", "--python", python]
    return install + (NEWEST if newest else PINNED), uninstall


def try_cpu_build(install: list, uv: list, *packages) -> str:
    """Install packages with torch's build for the CPU; return why not, or nothing."""
    if not uv:
        return "uv could not be had"
    return run(*install, "--torch-backend=cpu", *packages, quiet=True, **IMPATIENT)


def begin_with_torch(install: list, uv: list) -> None:
    """Ask whether packages can be had at all, and take torch's smaller build where that will do."""
    # the smallest question that only an index can answer
    if why := run(*install, "--dry-run", "--no-deps", "hatchling", quiet=True):
        sys.exit(f"No package index answers, so nothing can be installed: {why}")
    print("Downloading PyTorch and the rest of the environment ...", flush=True)
    if wants_cpu_build() and (why := try_cpu_build(install, uv, "torch")):
        print(
            "... with CUDA, 4.5 GB to download and 9 GB on disk: its CPU build could not be "
            f"had ({why}).",
            flush=True,
        )


def add_networks(home: Path, install: list, uv: list) -> bool:
    """Install what tests compare with, apart, because Lightning imports torchvision wherever it
    finds it; say if that ended well.
    """
    networks = ["--no-deps", "--target", home / "networks", *NETWORKS]
    if wants_cpu_build() and not try_cpu_build(install, uv, *networks):
        return True
    return not run(*install, *networks)


def main(folder: str, extra: str = "learn", *, this_python: bool = False) -> int:
    """Create or complete the environment and return the exit status."""
    if (platform.system(), platform.machine()) == ("Darwin", "x86_64"):
        sys.exit(
            "PyTorch has no recent release for Intel Macs: open the course on Colab or Kaggle."
        )
    # The network of a company or a school may have a certificate that only the system knows.
    os.environ.setdefault("UV_SYSTEM_CERTS", "1")
    home = Path(folder).resolve()
    claim(home)
    python, uv = python_in(home), find_uv(home)
    if run(python, "-m", "pip", "--version", quiet=True):
        make_environment(home, uv, this_python=this_python)
    if extra == "newest":
        if not uv:
            sys.exit(
                "The newest releases need uv, which alone can replace a pin: install it first."
            )
        os.chdir(tempfile.gettempdir())  # where uv does not read the limits of pyproject.toml
    install, uninstall = commands(python, uv, newest=extra == "newest")
    if not installed(home, "torch"):
        begin_with_torch(install, uv)
    course = f"{ROOT}[{'learn' if extra == 'learn' else 'test'}]"
    if not run_long(home, *install, "-e", course):
        print("The environment is not complete. Try again: what is there already is kept.")
        return 1
    for xla in installed(home, "torch_xla"):
        settle_xla(python, xla, uninstall)
    if extra != "learn" and not add_networks(home, install, uv):
        return 1
    quiet_lab(home)
    (home / f"ready-{extra}").touch()
    print(f"Ready: {size_of(home)}.", flush=True)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Build the course's environment.")
    parser.add_argument("folder")
    parser.add_argument("extra", nargs="?", default="learn", choices=["learn", "test", "newest"])
    parser.add_argument(
        "--this-python", action="store_true", help="take no other Python, even if XLA needs one"
    )
    asked = parser.parse_args()
    try:
        sys.exit(main(asked.folder, asked.extra, this_python=asked.this_python))
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}. Choose folders of your own: {ADVICE}")
