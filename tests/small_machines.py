"""Small environments with a real pip and stand-ins for the large packages, for the tests of the
set-up cell.
"""

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from dataclasses import replace
from pathlib import Path

import IPython

from tools.setup_cell import read_address, setup_cell

ROOT = Path(__file__).resolve().parent.parent
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# a port where nothing listens: what a machine without a network is to pip
NOWHERE = "http://127.0.0.1:9"
# What a lesson needs, as stand-ins of a version that is good enough.
PINS = "matplotlib==3.10.0 ipywidgets==7.7.1 numpy==2.1.3 pandas==2.2.3 tensorboard==2.20.0"
PINS += " psutil==5.9.5 pooch==1.8.2 parso==0.8.4 tqdm==4.67.3 packaging==24.2"
GOOD = dict(pin.split("==") for pin in PINS.split())
SETUP = setup_cell(replace(read_address(), repository="", published=False))
# Runs a cell as a notebook does. IPython comes from the environment of the tests, which nothing in
# the cell may see.
RUN_CELL = f"""
import sys
sys.path.append({str(Path(IPython.__file__).parent.parent)!r})
import pexpect  # for %pip
import stack_data  # for tracebacks
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(history_length=0)
sys.path.pop()
done = shell.run_cell(sys.stdin.read())
sys.exit(not done.success)
"""


def write_wheel(
    folder: Path, name: str, version: str, *, requires: tuple = (), python: str = ""
) -> Path:
    """Write a wheel with one module that has nothing in it, and return it."""
    module, home = name.replace("-", "_"), f"{name.replace('-', '_')}-{version}.dist-info"
    fields = [
        f"Name: {name}",
        f"Version: {version}",
        *(f"Requires-Dist: {each}" for each in requires),
    ]
    fields += [f"Requires-Python: {python}"] if python else []
    files = {
        f"{module}/__init__.py": f"__version__ = {version!r}\n",
        f"{home}/METADATA": "\n".join(["Metadata-Version: 2.1", *fields]) + "\n",
        f"{home}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{home}/RECORD"] = "".join(
        f"{file},{checksum(text)},{len(text)}\n" for file, text in files.items()
    )
    path = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
    return path


def checksum(text: str) -> str:
    """Return a checksum as wheels write it."""
    digest = hashlib.sha256(text.encode()).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def build_course(folder: Path) -> Path:
    """Build the course's real wheel into a folder and return it."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("accelerator_course-*.whl"))


class SmallMachine:
    """An environment of its own, a folder with notebooks, and no network."""

    def __init__(self, home: Path, template: Path):
        self.env, self.folder, self.stock = home / "env", home / "note books", home / "stock"
        shutil.copytree(template, self.env, symlinks=True)
        self.folder.mkdir()
        self.stock.mkdir()
        self.python = self.env / "bin" / "python"
        self.site = next(self.env.glob("lib/python*/site-packages"))

    def run(self, *words, prefix: tuple = (), cell: str = "") -> subprocess.CompletedProcess:
        """Run Python in the folder with the notebooks, with no network, none of our settings, and
        not first on PATH.
        """
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PIP_", "PYTHON"))
        }
        environment |= {
            "PIP_INDEX_URL": NOWHERE,
            "PIP_CONFIG_FILE": os.devnull,
            "IPYTHONDIR": str(self.stock),
        }
        command = [*prefix, self.python, *words]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            input=cell,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def set_up(self, cell: str = SETUP) -> subprocess.CompletedProcess:
        """Run the set-up cell, or another one, as a notebook does."""
        return self.run("-c", RUN_CELL, cell=cell)

    def has(self, **versions: str) -> "SmallMachine":
        """Put stand-ins of these versions in, as the machine's maker did, and return the
        machine.
        """
        for name, version in versions.items():
            with zipfile.ZipFile(
                write_wheel(self.stock, name.replace("_", "-"), version)
            ) as archive:
                archive.extractall(self.site)
        return self

    def pip_install(self, *words) -> None:
        """Install something with pip, which must work."""
        done = self.run("-m", "pip", "install", "--quiet", *words)
        assert done.returncode == 0, done.stderr

    def versions(self) -> set[str]:
        """Return what is installed, as name-version, without the course."""
        names = {path.name.removesuffix(".dist-info") for path in self.site.glob("*.dist-info")}
        return {name for name in names if "accelerator" not in name}

    def contents(self) -> dict[Path, str]:
        """Return a checksum of every file that is installed."""
        files = (path for path in self.site.rglob("*") if path.is_file() and path.suffix != ".pyc")
        return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def empty_environment(folder: Path) -> Path:
    """Make an environment with nothing but pip and return it, to be copied."""
    venv.create(folder, with_pip=True, symlinks=True)
    return folder
