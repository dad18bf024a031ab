"""Stand-ins for machines that this one is not, on which a test starts a real Python and torch.

A stand-in replaces only what the machine lacks: the driver's management library (compiled from
tests/stubs), `nvidia-smi`, an installed distribution, or the files of /sys and /dev.
"""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
STUBS = Path(__file__).resolve().parent / "stubs"
# Variables that would make a test depend on the machine that it runs on.
FOREIGN = ("CI", "COLAB_RELEASE_TAG", "KAGGLE_KERNEL_RUN_TYPE", "BINDER_SERVICE_HOST")
FOREIGN += ("BINDER_LAUNCH_HOST", "CUDA_VISIBLE_DEVICES", "PJRT_DEVICE", "COURSE_DEVICE")
FOREIGN += ("LD_LIBRARY_PATH", "LD_PRELOAD")
needs_linux = pytest.mark.skipif(
    sys.platform != "linux", reason="loads stub libraries as Linux does"
)
needs_gcc = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="needs gcc to compile the stub libraries"
)
needs_no_gpu = pytest.mark.skipif(
    shutil.which("nvidia-smi") is not None or Path("/proc/driver/nvidia").exists(),
    reason="needs a machine without an NVIDIA driver",
)


def compile_stub(source: Path, library: Path, *options: str) -> Path:
    """Compile one C file to a shared library, and return where that is."""
    library.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-shared", "-fPIC", "-o", library, source, "-ldl", *options]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    return library


def stub_smi(folder: Path, output: str, status: int = 0) -> dict[str, str]:
    """Return the variables that put an `nvidia-smi` on the PATH that prints `output` and exits with
    `status`.
    """
    tool = folder / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\necho '{output}'\nexit {status}\n")
    tool.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def machine_with(folder: Path, *pci: tuple[str, str, str]) -> Path:
    """Return a folder with a /sys whose PCI bus holds the devices given as (vendor, model,
    class).
    """
    bus = folder / "sys/bus/pci/devices"
    bus.mkdir(parents=True)
    for slot, numbers in enumerate(pci):
        (bus / f"0000:00:{slot:02x}.0").mkdir()
        for name, number in zip(("vendor", "device", "class"), numbers, strict=True):
            (bus / f"0000:00:{slot:02x}.0" / name).write_text(f"{number}\n")
    return folder


def stub_package(folder: Path, name: str, version: str, code: str) -> Path:
    """Write an installed distribution: a package, its version.py and its metadata. Return the
    folder for the path.
    """
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(textwrap.dedent(code))
    (folder / name / "version.py").write_text(f"__version__ = '{version}'\n")
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return folder
