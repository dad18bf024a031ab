"""Build the course's environment: `python3 tools/install.py .venv`. Needs nothing but Python
itself.

uv installs the packages, and pip where uv is not available. Where no NVIDIA driver is found,
torch's CPU build is tried
first: it is a tenth of the size. It is served only by PyTorch's own wheel index, which some
networks block, so a
failure there is no failure: the default index has a build that runs on a CPU too.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INDEX_PATIENCE_S = 5  # for a connection or an answer from PyTorch's wheel index


def has_nvidia_driver() -> bool:
    """Say whether this machine has an NVIDIA driver, asking neither torch nor the GPU."""
    return bool(shutil.which("nvidia-smi")) or Path("/proc/driver/nvidia/version").exists()


def pinned(name: str) -> str:
    """Return the requirement of one package in constraints.txt, such as 'torch==2.9.0'."""
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line.partition("==")[0] == name:
            return line
    raise LookupError(f"constraints.txt has no line for {name!r}.")


def on_linux_x86() -> bool:
    """Say whether this is the platform where torch's default build is the large one, for CUDA."""
    return platform.system() == "Linux" and platform.machine() == "x86_64"


def wants_cpu_build() -> bool:
    """Say whether a smaller CPU build exists for this platform and suits this machine."""
    return on_linux_x86() and not has_nvidia_driver()


def install_uv(python: Path) -> bool:
    """Install uv, which installs the rest in less than half of pip's time; return whether that
    worked.
    """
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", pinned("uv")]
    return subprocess.run(pip, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def uv_install(python: Path) -> list:
    """Return uv's command; it compiles to bytecode on request alone, and without that imports take
    far longer.
    """
    return [python, "-m", "uv", "pip", "install", "--compile-bytecode", "--python", python]


def try_cpu_build(python: Path, networks: Path) -> bool:
    """Install the CPU builds of torch and of torchvision, which has to match; return whether that
    worked.
    """
    impatient = {**os.environ, "UV_HTTP_TIMEOUT": str(INDEX_PATIENCE_S), "UV_HTTP_RETRIES": "0"}
    # uv knows the address of PyTorch's index, and asks it for these packages alone.
    uv = [*uv_install(python), "--quiet", "--torch-backend", "cpu"]
    wanted = [pinned("torch")], [*beside(networks), pinned("torchvision")]
    return all(
        subprocess.run([*uv, *each], env=impatient, capture_output=True).returncode == 0
        for each in wanted
    )


def beside(networks: Path) -> list:
    """Return the arguments that put packages in a folder of their own, which Python does not search
    by itself.
    """
    return ["--no-deps", "--target", networks]


def has_torch(python: Path) -> bool:
    """Say whether the environment already holds a torch, of whatever build."""
    found = "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"
    return subprocess.run([python, "-c", found]).returncode == 0


def has_pip(python: Path) -> bool:
    """Say whether the environment is whole: its Python can have been removed, or making it can have
    broken off.
    """
    return (
        python.exists()
        and subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode == 0
    )


def install_torch(python: Path, networks: Path, *, with_uv: bool) -> None:
    """Say what is about to be downloaded, and install torch's CPU build where that is available and
    enough.
    """
    if wants_cpu_build() and with_uv:
        print(
            "No NVIDIA driver here. Installing torch's CPU build: about 0.6 GB to download in all.",
            flush=True,
        )
        if try_cpu_build(python, networks):
            return
        print(
            "PyTorch's wheel index is out of reach: the default build runs on a CPU as well.",
            flush=True,
        )
    if on_linux_x86():
        print(
            "Installing the course with torch for CUDA: about 4.5 GB to download, 8.5 GB on disk.",
            flush=True,
        )
    else:
        print("Installing the course: about 0.6 GB to download.", flush=True)


def install_course(python: Path, networks: Path, *, with_uv: bool) -> int:
    """Install the course with all that it needs, by uv or else by pip, and return the exit
    status.
    """
    # The networks that tests compare with are missing at most once: pip would install them again
    # each time.
    missing = [pinned(name) for name in ("timm", "torchvision") if not (networks / name).exists()]
    wanted = [["-c", ROOT / "constraints.txt", "-e", f"{ROOT}[all]"]]
    wanted += [[*beside(networks), *missing]] if missing else []
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check"]
    if with_uv and all(
        subprocess.run([*uv_install(python), *each]).returncode == 0 for each in wanted
    ):
        return 0
    print(
        "Installing with pip, because uv could not be used: this takes a few minutes longer.",
        flush=True,
    )
    return max(subprocess.run([*pip, *each]).returncode for each in wanted)


def main(folder: str) -> int:
    """Create or complete the environment in `folder` and return the exit status."""
    if not (3, 10) <= sys.version_info < (3, 14):
        print(
            f"The course runs on Python 3.10 to 3.13, but {sys.executable} is {platform.python_version()}. "
            "Name another one: make lab PYTHON=python3.12"
        )
        return 2
    if (platform.system(), platform.machine()) == ("Darwin", "x86_64"):
        print(
            "PyTorch has no release for Intel's processors in Macs since 2.2, and the course needs 2.6. Open it on "
            "Colab or Kaggle; on a Mac with Apple silicon, name a Python that is made for it: make lab PYTHON=..."
        )
        return 2
    home = Path(folder)
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not has_pip(python):
        print(f"Creating {home}", flush=True)
        venv.create(
            home, with_pip=True, clear=(home / "pyvenv.cfg").exists() and not python.exists()
        )
    with_uv, networks = install_uv(python), home / "networks"
    if not has_torch(python):
        install_torch(python, networks, with_uv=with_uv)
    status = install_course(python, networks, with_uv=with_uv)
    if status == 0:
        (home / "ready").touch()
    return status


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "folder", nargs="?", default=".venv", help="of the environment (default .venv)"
    )
    sys.exit(main(parser.parse_args().folder))
