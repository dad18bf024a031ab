"""Find the accelerators that this torch can use, by asking what a question does not start."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from course_utils.hardware.machine import (
    AMD,
    INTEL,
    TPU_CHIPS,
    cpu_name,
    host_memory_bytes,
    pci_devices,
    pci_name,
    read_text,
    tpu_chips,
)
from course_utils.hardware.nvidia import Card, has_cuda_library, read_driver, visible_cards

if TYPE_CHECKING:  # what a `Device` is made of: kind, index, name, memory in bytes, detail
    Found = tuple[str, int, str, int | None, str]


def accelerators(root: Path) -> list[Found]:
    """Return every accelerator that this torch can use, best first."""
    cuda = rocm_cards(root) if torch.version.hip else cuda_cards(root)
    return [*torch_tpus(root), *cuda, *xla_tpus(root), *xpus(root), *mps(root)]


def cuda_cards(root: Path) -> list[Found]:
    """Return the NVIDIA cards that CUDA shows: from CUDA where it already runs, else from the driver's own library."""
    if not torch.version.cuda:
        return []
    if torch.cuda.is_initialized():
        known = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
        told = [(card.name, card.total_memory, capability_in_words((card.major, card.minor))) for card in known]
        return [("cuda", index, *card) for index, card in enumerate(told)]
    driver = read_driver()
    if driver is None:
        return jetson(root)
    if driver.cuda[0] < int(torch.version.cuda.split(".")[0]):
        return []  # too old for this torch: CUDA would not start
    cards = visible_cards(driver.cards, os.environ.get("CUDA_VISIBLE_DEVICES"))
    mixed = len({card.name for card in driver.cards}) > 1 and os.environ.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID"
    doubt = "; CUDA may number unlike cards in another order" if mixed else ""
    return [
        ("cuda", index, card.name, card.memory_bytes, capability_in_words(card.capability) + doubt)
        for index, card in enumerate(cards)
    ]


def jetson(root: Path) -> list[Found]:
    """Return the GPU of an NVIDIA Jetson, whose driver may come without a management library."""
    board = read_text(root / "proc/device-tree/model").strip("\0\n")
    if "NVIDIA" not in board or not has_cuda_library():
        return []
    shown = visible_cards((Card(board, ""),), os.environ.get("CUDA_VISIBLE_DEVICES"))
    return [("cuda", 0, card.name, host_memory_bytes(root), "memory shared with the CPU") for card in shown]


def capability_in_words(capability: tuple[int, int] | None) -> str:
    """Return "compute capability 9.0", or that the driver does not tell it."""
    return f"compute capability {capability[0]}.{capability[1]}" if capability else "compute capability not told"


def rocm_cards(root: Path) -> list[Found]:
    """Return the AMD cards that the kernel's compute driver lists (/sys/class/kfd), as HIP_VISIBLE_DEVICES allows."""
    found = []
    for node in sorted((root / "sys/class/kfd/kfd/topology/nodes").glob("*"), key=lambda node: int(node.name)):
        told = dict(line.split(maxsplit=1) for line in read_text(node / "properties").splitlines() if " " in line)
        if int(told.get("simd_count", 0)) == 0:
            continue  # a processor, not a graphics card
        version = int(told.get("gfx_target_version", 0))  # 90402 stands for gfx942: major, minor, stepping (in hex)
        arch = f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
        banks = [read_text(bank / "properties") for bank in (node / "mem_banks").glob("*")]
        sizes = [int(size) for bank in banks for size in re.findall(r"size_in_bytes (\d+)", bank)]
        name = pci_name(AMD, f"0x{int(told.get('device_id', 0)):04x}", root) or arch
        found.append((f"AMD {name}", sum(sizes) or None, arch))
    # ROCm's own variable chooses first, then HIP's among what is left (ROCm documentation, "GPU isolation techniques").
    found = _allowed(found, os.environ.get("ROCR_VISIBLE_DEVICES"))
    found = _allowed(found, os.environ.get("HIP_VISIBLE_DEVICES", os.environ.get("CUDA_VISIBLE_DEVICES")))
    return [("cuda", index, *card) for index, card in enumerate(found)]


def xla_tpus(root: Path) -> list[Found]:
    """Return the TPU devices that torch_xla will show, from a scan of the PCI bus and of /dev."""
    chips = tpu_chips(root)
    if not chips or not xla_matches_torch() or os.environ.get("PJRT_DEVICE", "TPU") != "TPU":
        return []
    found = []
    for chip in chips:
        name, devices, memory_gib = TPU_CHIPS.get(chip, ("TPU", 1, None))
        memory = memory_gib * 2**30 // devices if memory_gib else None
        found += [(name, memory, f"1 of {devices} devices of its chip" if devices > 1 else "one chip")] * devices
    return [("xla", index, *device) for index, device in enumerate(found)]


def can_rehearse(root: Path) -> bool:
    """Say whether torch_xla can compile and run on this CPU in place of a TPU."""
    asked_for = os.environ.get("PJRT_DEVICE", "TPU" if tpu_chips(root) else "CPU")
    return asked_for == "CPU" and xla_matches_torch()


def xla_matches_torch() -> bool:
    """Say whether torch_xla is installed and made for this torch: it loads with its own minor version only."""
    if importlib.util.find_spec("torch_xla") is None:
        return False
    try:
        version = importlib.metadata.version("torch_xla")
    except importlib.metadata.PackageNotFoundError:
        return True  # a copy without metadata, such as one built from source: nothing speaks against it
    return version.split(".")[:2] == torch.__version__.split(".")[:2]


def torch_tpus(root: Path) -> list[Found]:
    """Return TorchTPU's devices. It is not asked where there is no TPU: off Google's cloud its answer can hang."""
    current = torch.accelerator.current_accelerator() if tpu_chips(root) else None
    if current is None or current.type != "tpu":
        return []
    name = TPU_CHIPS.get(tpu_chips(root)[0], ("TPU",))[0]
    return [("tpu", index, name, None, "through TorchTPU") for index in range(torch.accelerator.device_count())]


def xpus(root: Path) -> list[Found]:
    """Return Intel's graphics cards, where this torch was built for them. Their memory is known once XPU runs."""
    if not torch.xpu.is_available():
        return []
    count = range(torch.xpu.device_count())
    if torch.xpu.is_initialized():
        cards = [torch.xpu.get_device_properties(index) for index in count]
        return [("xpu", i, card.name, card.total_memory, f"{card.gpu_eu_count} cores") for i, card in enumerate(cards)]
    there = [pci for pci in pci_devices(root) if pci.vendor == INTEL and pci.is_display]
    names = [f"Intel {pci_name(INTEL, pci.model, root) or 'graphics card ' + pci.model}" for pci in there]
    return [("xpu", i, names[i] if i < len(names) else "Intel graphics card", None, "") for i in count]


def mps(root: Path) -> list[Found]:
    """Return the graphics part of Apple's chip. It shares the computer's memory."""
    if not torch.backends.mps.is_available():
        return []
    return [("mps", 0, f"GPU of {cpu_name(root)}", host_memory_bytes(root), "memory shared with the CPU")]


def _allowed(found: list, setting: str | None) -> list:
    if setting is None:
        return found
    chosen = []
    for entry in setting.split(","):
        if not entry.strip().isdigit() or int(entry) >= len(found):
            break
        chosen.append(found[int(entry)])
    return chosen
