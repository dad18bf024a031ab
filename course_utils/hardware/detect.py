"""Find the accelerators that this torch can use, by asking what a question does not start."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import torch

from course_utils.hardware import machine
from course_utils.hardware.nvidia import Card, read_driver, visible_cards


def accelerators() -> list[tuple[str, int, Card]]:
    """Return kind, index and description of every accelerator that this torch can use, best
    first.
    """
    cuda = rocm_cards if torch.version.hip else cuda_cards
    kinds = {"tpu": torch_tpus, "cuda": cuda, "xla": xla_tpus, "xpu": xpus, "mps": mps}
    return [
        (kind, index, card) for kind, find in kinds.items() for index, card in enumerate(find())
    ]


def cuda_cards() -> list[Card]:
    """Return the NVIDIA cards that CUDA shows: from CUDA where it already runs, else from the
    driver's own library.
    """
    if not torch.version.cuda:
        return []
    if torch.cuda.is_initialized():
        known = map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
        return [
            Card(card.name, card.total_memory, f"compute capability {card.major}.{card.minor}")
            for card in known
        ]
    driver = read_driver()
    # a Jetson: no NVML before JetPack 6
    if driver is None and (machine.ROOT / "etc/nv_tegra_release").exists():
        return [Card("NVIDIA Jetson", machine.host_memory_bytes())] * torch.cuda.device_count()
    if driver is None or driver.cuda[0] < int(torch.version.cuda.split(".")[0]):
        return []  # too old for this torch: CUDA would not start
    # CUDA shows a program one slice of a divided card and not the card (NVIDIA, Multi-Instance GPU
    # User Guide).
    slices = "divided (MIG): CUDA shows one slice"
    there = [
        replace(card, memory_bytes=None, detail=slices) if card.mig else card
        for card in driver.cards
    ]
    cards = visible_cards(there, os.environ.get("CUDA_VISIBLE_DEVICES"))
    if (
        len({card.name for card in there}) == 1
        or os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    ):
        return cards
    return [
        replace(card, detail=f"{card.detail}; CUDA may number unlike cards in another order")
        for card in cards
    ]


def rocm_cards() -> list[Card]:
    """Return the AMD cards that the kernel's compute driver lists (/sys/class/kfd), as
    HIP_VISIBLE_DEVICES allows.
    """
    nodes, found = machine.ROOT / "sys/class/kfd/kfd/topology/nodes", []
    # Windows, and Linux inside of it (WSL), where ROCm works without that driver
    if not nodes.exists():
        return [Card("AMD graphics card")] * torch.cuda.device_count()
    for node in sorted(nodes.glob("*"), key=lambda node: int(node.name)):
        told = dict(
            re.findall(r"^(\w+) (\d+)$", machine.read_text(node / "properties"), re.MULTILINE)
        )
        if int(told.get("simd_count", 0)) == 0:
            continue  # a processor, not a graphics card
        # 90402 stands for gfx942: major, minor, stepping (in hex)
        version = int(told.get("gfx_target_version", 0))
        arch = f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
        banks = [machine.read_text(bank / "properties") for bank in (node / "mem_banks").glob("*")]
        sizes = [int(size) for bank in banks for size in re.findall(r"size_in_bytes (\d+)", bank)]
        name = machine.pci_name(machine.AMD, f"0x{int(told.get('device_id', 0)):04x}") or arch
        # which tells two alike apart
        found.append(Card(f"AMD {name}", sum(sizes) or None, arch, uuid=node.name))
    # ROCm's own variable chooses first, then HIP's among what is left (ROCm documentation, "GPU
    # isolation techniques").
    found = visible_cards(found, os.environ.get("ROCR_VISIBLE_DEVICES"))
    return visible_cards(
        found, os.environ.get("HIP_VISIBLE_DEVICES", os.environ.get("CUDA_VISIBLE_DEVICES"))
    )


def xla_tpus() -> list[Card]:
    """Return the TPU devices that torch_xla will show, from a scan of the PCI bus and of /dev."""
    if os.environ.get("PJRT_DEVICE", "TPU") != "TPU" or not xla_matches_torch():
        return []
    found = []
    for chip in machine.tpu_chips():
        name, devices, memory_gib = machine.TPU_CHIPS[chip]
        detail = f"1 of {devices} devices of its chip" if devices > 1 else "one chip"
        found += [Card(name, memory_gib and memory_gib * 2**30, detail)] * devices
    return found


def can_rehearse() -> bool:
    """Say whether torch_xla can compile and run on this CPU in place of a TPU."""
    return (
        os.environ.get("PJRT_DEVICE", "TPU" if machine.tpu_chips() else "CPU") == "CPU"
        and xla_matches_torch()
    )


def xla_matches_torch() -> bool:
    """Say whether torch_xla is installed and made for this torch: it loads with its own minor
    version only.
    """
    xla = machine.read_package("torch_xla")
    return bool(xla.version) and xla.minor == machine.Package(torch.__version__).minor


def torch_tpus() -> list[Card]:
    """Return TorchTPU's devices. It is not asked where there is no TPU: off Google's cloud its
    answer can hang.
    """
    chips = machine.tpu_chips()
    current = torch.accelerator.current_accelerator() if chips else None
    if current is None or current.type != "tpu":
        return []
    return [
        Card(machine.TPU_CHIPS[chips[0]][0], detail="through TorchTPU")
    ] * torch.accelerator.device_count()


def xpus() -> list[Card]:
    """Return Intel's graphics cards, where this torch was built for them. Their memory is known
    once XPU runs.
    """
    if not torch.xpu.is_available():
        return []
    count = torch.xpu.device_count()
    if torch.xpu.is_initialized():
        cards = map(torch.xpu.get_device_properties, range(count))
        return [Card(card.name, card.total_memory, f"{card.gpu_eu_count} cores") for card in cards]
    models = [model for vendor, model in machine.graphics_cards() if vendor == machine.INTEL]
    names = [machine.pci_name(machine.INTEL, model) or f"graphics card {model}" for model in models]
    names += ["graphics card"] * count
    return [Card(f"Intel {name}") for name in names[:count]]


def mps() -> list[Card]:
    """Return the graphics part of Apple's chip. It shares the computer's memory."""
    if not torch.backends.mps.is_available():
        return []
    return [
        Card(
            f"GPU of {machine.cpu_name()}",
            machine.host_memory_bytes(),
            "memory shared with the CPU",
        )
    ]
