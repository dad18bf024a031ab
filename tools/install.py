"""Build the course's environment: `python3 tools/install.py .venv`, or with `test` at the end.

uv installs the packages, and brings a Python where this one does not fit; where uv cannot be had,
pip does it. Without an NVIDIA driver torch's CPU build is tried first: it is a tenth of the size,
but it lies on an index that some networks block.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import venv
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
UV = "uv==0.13.8"
FITS = ">=3.11,<3.14"  # torch_xla has no release for a later Python
IMPATIENT = {"UV_HTTP_TIMEOUT": "5", "UV_HTTP_RETRIES": "0"}
# Without this, JupyterLab asks in a window over the lesson whether to show news.
SETTINGS = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}}

# What tests compare with: networks of others, and what transformers itself imports.
NETWORKS = ["timm", "torchvision", "transformers", "huggingface_hub", "tokenizers"]
NETWORKS += ["safetensors", "regex", "httpx2", "httpcore2", "truststore"]


def works(*command, quiet=False, **variables) -> bool:
    """Run a command and say whether it ended well."""
    output = subprocess.DEVNULL if quiet else None
    words = [str(word) for word in command]
    env = {**os.environ, **variables}
    try:
        return subprocess.run(words, stdout=output, stderr=output, env=env).returncode == 0
    except FileNotFoundError:
        return False


def python_in(home: Path) -> Path:
    """Return the Python of an environment."""
    return home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def find_uv(home: Path) -> list:
    """Return the command that starts uv, which is installed beside the environment if need be."""
    if found := shutil.which("uv"):
        return [found]
    if find_spec("ensurepip") is None:
        sys.exit("Install uv first, or on Debian and Ubuntu the package python3-venv.")
    python = python_in(home / "uv")
    if not works(python, "-m", "uv", "--version", quiet=True):
        venv.create(home / "uv", with_pip=True, clear=True)
        if not works(python, "-m", "pip", "install", "--quiet", UV):
            return []
    return [python, "-m", "uv"]


def make_environment(home: Path, uv: list) -> None:
    """Make an empty environment, with this Python or, where it does not fit, with one from uv."""
    make = [*uv, "venv", "--quiet", "--seed", "--allow-existing", home, "--python"]
    fits = (3, 11) <= sys.version_info < (3, 14)
    if uv and works(*make, sys.executable if fits else FITS):
        return
    if sys.version_info < (3, 11):  # noqa: UP036  the Python that starts this may be older
        sys.exit(f"The course needs Python 3.11 or later, and {sys.executable} is older.")
    if not fits:
        print("No Python before 3.14 could be had: the course comes without torch_xla.", flush=True)
    venv.create(home, with_pip=True, clear=True)  # uv may have left a part of one


def wants_cpu_build() -> bool:
    """Say whether torch's default build, for CUDA, would be larger than this machine needs."""
    driver = shutil.which("nvidia-smi") or Path("/proc/driver/nvidia/version").exists()
    return (platform.system(), platform.machine()) == ("Linux", "x86_64") and not driver


def main(folder: str, extra: str = "learn") -> int:
    """Create or complete the environment and return the exit status."""
    if (platform.system(), platform.machine()) == ("Darwin", "x86_64"):
        sys.exit(
            "PyTorch has no recent release for Intel Macs: open the course on Colab or Kaggle."
        )
    # The network of a company or a school may have a certificate that only the system knows.
    os.environ.setdefault("UV_SYSTEM_CERTS", "1")
    home = Path(folder).resolve()
    python, uv = python_in(home), find_uv(home)
    if not works(python, "-m", "pip", "--version", quiet=True):
        make_environment(home, uv)
    install = [python, "-m", "pip", "install", "--disable-pip-version-check"]
    if uv:
        install = [*uv, "pip", "install", "--compile-bytecode", "--python", python]
    install += ["-c", CONSTRAINTS]

    def try_cpu_build(*packages) -> bool:
        small = uv and wants_cpu_build()
        return small and works(*install, "--torch-backend=cpu", *packages, quiet=True, **IMPATIENT)

    if not list(home.glob("lib/python*/site-packages/torch")):
        print("Downloading PyTorch and the rest of the environment ...", flush=True)
        if wants_cpu_build() and not try_cpu_build("torch"):
            print("... with CUDA, 4.5 GB: PyTorch's index is out of reach.", flush=True)
    if not works(*install, "-e", f"{ROOT}[{extra}]"):
        return 1
    if extra == "test":  # apart, because Lightning imports torchvision wherever it finds it
        networks = ["--no-deps", "--target", home / "networks", *NETWORKS]
        if not (try_cpu_build(*networks) or works(*install, *networks)):
            return 1
    settings = home / "share" / "jupyter" / "lab" / "settings" / "overrides.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps(SETTINGS), encoding="utf-8")
    (home / f"ready-{extra}").touch()
    return 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        sys.exit("usage: python3 tools/install.py FOLDER [learn|test]")
    sys.exit(main(*sys.argv[1:]))
