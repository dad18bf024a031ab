"""Build the course's environment: `python3 tools/install.py .venv`. Needs nothing but Python itself.

Where no NVIDIA driver is found, torch's CPU build is tried first: it is a tenth of the size. It is served only
by PyTorch's own wheel index, which some networks block, so a failure there is no failure: the default index
has a build that runs on a CPU too.
"""

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


def try_cpu_build(python: Path) -> bool:
    """Install torch's CPU build from PyTorch's own wheel index; return whether that worked, quickly if not."""
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", pinned("uv")]
    impatient = {**os.environ, "UV_HTTP_TIMEOUT": str(INDEX_PATIENCE_S), "UV_HTTP_RETRIES": "0"}
    # uv knows the address of PyTorch's index, and asks it for torch alone.
    uv = [
        python,
        "-m",
        "uv",
        "pip",
        "install",
        "--quiet",
        "--python",
        python,
        "--torch-backend",
        "cpu",
        pinned("torch"),
    ]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.run(pip, **quiet).returncode == 0 and subprocess.run(uv, env=impatient, **quiet).returncode == 0


def has_torch(python: Path) -> bool:
    """Say whether the environment already holds a torch, of whatever build."""
    found = "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"
    return subprocess.run([python, "-c", found]).returncode == 0


def install_torch(python: Path) -> None:
    """Say what is about to be downloaded, and install torch's CPU build where that is to be had and enough."""
    if wants_cpu_build():
        print("No NVIDIA driver here. Installing torch's CPU build: about 0.6 GB to download in all.", flush=True)
        if try_cpu_build(python):
            return
        print("PyTorch's wheel index is out of reach: the default build runs on a CPU as well.", flush=True)
    if on_linux_x86():
        print("Installing the course with torch for CUDA: about 4.5 GB to download, 8.5 GB on disk.", flush=True)
    else:
        print("Installing the course: about 0.6 GB to download.", flush=True)


def main(folder: str) -> int:
    """Create or complete the environment in `folder` and return the exit status of pip."""
    if not (3, 10) <= sys.version_info < (3, 14):
        print(
            f"The course runs on Python 3.10 to 3.13, but {sys.executable} is {platform.python_version()}. "
            "Name another one: make lab PYTHON=python3.12"
        )
        return 2
    home = Path(folder)
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        print(f"Creating {home}", flush=True)
        venv.create(home, with_pip=True)
    if not has_torch(python):
        install_torch(python)
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check"]
    status = subprocess.run([*pip, "-c", ROOT / "constraints.txt", "-e", f"{ROOT}[all]"]).returncode
    if status == 0:
        (home / "ready").touch()
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ".venv"))
