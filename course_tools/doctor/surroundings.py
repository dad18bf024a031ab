"""Facts about this machine for the doctor alone: its cards, its host, its copies of torch."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from course_utils.hardware import machine

NVIDIA, AMD, INTEL = "0x10de", "0x1002", "0x8086"  # on the PCI bus
# VGA, 3D, other display, processing accelerator
DISPLAY_CLASSES = ("0x0300", "0x0302", "0x0380", "0x1200")
# A variable that a hosted machine sets, and the kind of host that it shows.
HOST_VARIABLES = {
    "COLAB_RELEASE_TAG": "colab",
    "KAGGLE_KERNEL_RUN_TYPE": "kaggle",
    "BINDER_SERVICE_HOST": "binder",
    "BINDER_LAUNCH_HOST": "binder",
    "CI": "ci",
}


def graphics_cards() -> list[tuple[str, str]]:
    """Return the PCI numbers of each graphics card or compute accelerator: its vendor and model,
    ("0x10de", "0x2335").

    There are none where there is no PCI bus to read (macOS, Windows, WSL).
    """
    return [
        (vendor, model)
        for vendor, model, kind in machine.pci_devices(machine.ROOT)
        if kind.startswith(DISPLAY_CLASSES)
    ]


def host_kind() -> str:
    """Return where this Python runs: "colab", "kaggle", "binder", "ci", "tpu-vm" or "computer"."""
    for variable, host in HOST_VARIABLES.items():
        if os.environ.get(variable):
            return host
    return "tpu-vm" if machine.tpu_chips() else "computer"


def find_copies(name: str) -> list[str]:
    """Return every place from which Python could import a package, the one that it takes first."""
    found = []
    folders = [folder for folder in sys.path if os.path.isdir(folder)]
    for folder in dict.fromkeys(map(os.path.realpath, folders)):
        package, module = Path(folder, name), Path(folder, f"{name}.py")
        if (package / "__init__.py").is_file():
            found.append(str(package))
        elif module.is_file():
            found.append(str(module))
    return found


def in_container() -> bool:
    """Say whether this is a container of Docker, Podman, Kubernetes or Apptainer (Singularity)."""
    marks = (".dockerenv", "run/.containerenv", ".singularity.d")
    marked = any((machine.ROOT / mark).exists() for mark in marks)
    return marked or "KUBERNETES_SERVICE_HOST" in os.environ


def jetson() -> str:
    """Return "Jetson" with its release, such as "Jetson (R36)", or "" on every other machine.

    A Jetson's graphics part is on no PCI bus. Its release R35 is JetPack 5, and R36 is JetPack 6.
    Thor is left out: the builds for servers have kernels for it.
    """
    release = machine.read_text(machine.ROOT / "etc/nv_tegra_release")
    board = machine.read_text(machine.ROOT / "proc/device-tree/model")
    kernel = machine.read_text(machine.ROOT / "proc/version").lower()
    is_jetson = release or "tegra" in kernel or re.search("Jetson|Orin|Xavier", board)
    if not is_jetson or "Thor" in board:
        return ""
    number = re.search(r"R\d+", release)
    return f"Jetson ({number[0]})" if number else "Jetson"


def in_wsl() -> bool:
    """Say whether this is Linux inside of Windows (WSL)."""
    return "microsoft" in machine.read_text(machine.ROOT / "proc/version").lower()
