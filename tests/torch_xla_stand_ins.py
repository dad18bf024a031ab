"""A Python with a torch_xla that does not fit, made without installing anything.

It is a folder of links to everything in the real site-packages except torch_xla, and is used
through PYTHONPATH by a Python that was started with -S, and so does not look into the real
site-packages.
"""

import importlib.machinery
import os
import re
import subprocess
import sys
from pathlib import Path

import torch
from stand_ins import stub_package

SITE = Path(torch.__file__).resolve().parent.parent
ROOT = Path(__file__).resolve().parent.parent
XLA_FILES = ("torch_xla", "_XLAC", "libtpu")


def remedy(verb: str = "replace it") -> str:
    """Return the way out for this torch: torch_xla has a release for each up to 2.9, and none since
    (its releases on PyPI, November 2026).
    """
    minor = ".".join(torch.__version__.split(".")[:2])
    if tuple(map(int, minor.split("."))) > (2, 9):
        return f"no torch_xla was made for torch {minor}, so leave this torch alone"
    command = f"`pip install torch_xla=={minor}.0`"
    return f"{verb} with {command}, which leaves torch alone, and restart."


def with_another_torch_xla(folder: Path) -> Path:
    """Link all that is installed into `folder`, but for the course, whose source is used instead,
    and with a torch_xla whose library has an undefined symbol, like one for another torch.
    """
    folder.mkdir()
    for entry in SITE.iterdir():
        if not entry.name.startswith((*XLA_FILES, "accelerator_course")) and entry.suffix != ".pth":
            (folder / entry.name).symlink_to(entry)
    stub_package(folder, "torch_xla", "2.8.0", "import _XLAC\n")
    (folder / "torch_xla" / "_internal").mkdir()
    (folder / "torch_xla" / "_internal" / "__init__.py").write_text("")
    tpu = "def num_available_chips():\n    return 0\n"
    (folder / "torch_xla" / "_internal" / "tpu.py").write_text(tpu)
    _write_broken_library(folder / f"_XLAC{importlib.machinery.EXTENSION_SUFFIXES[0]}")
    return folder


def _write_broken_library(path: Path) -> None:
    # A small library of another package, in which the name of a function that it needs becomes one
    # of C++ that no library here has.
    import markupsafe._speedups as small

    library = Path(small.__file__).read_bytes()
    needed = re.search(rb"\0(PyUnicode_\w+)\0", library)[1]
    missing = b"_ZN5torch3xla".ljust(len(needed), b"x")[: len(needed)]
    path.write_bytes(library.replace(b"\0" + needed + b"\0", b"\0" + missing + b"\0"))


def environment(site: Path) -> dict[str, str]:
    """The environment in which `sys.executable -S` sees this stand-in and the course, and nothing
    else.
    """
    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PJRT_DEVICE")
    }
    return {**clean, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}


def run(site: Path, code: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-S", "-c", code]
    return subprocess.run(
        command, env=environment(site), capture_output=True, text=True, timeout=120
    )
