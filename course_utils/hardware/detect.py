"""Find the accelerators that PyTorch can use here, without initializing any of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import torch

from course_utils.hardware import KINDS, machine
from course_utils.hardware.nvidia import Card, read_driver, visible_cards


def accelerators() -> list[tuple[str, int, Card]]:
    """Return kind, index and description of every accelerator that torch can use, best first."""
    finders: dict[str, Callable[[], list[Card]]] = {
        "tpu": torch_tpus,
        "cuda": rocm_cards if torch.version.hip else cuda_cards,
        "xla": xla_tpus,
        "xpu": xpus,
        "mps": mps_gpus,
    }
    for kind in KINDS:
        if kind != "cpu":
            finders.setdefault(kind, partial(other_cards, kind))
    found = []
    for kind, find in finders.items():
        found += [(kind, index, card) for index, card in enumerate(find())]
    return found


def other_cards(kind: str) -> list[Card]:
    """Return the devices of a kind without a finder of its own, which torch.accelerator counts."""
    current = torch.accelerator.current_accelerator()
    if current is None or current.type != kind:
        return []
    return [Card(f"{kind} device")] * torch.accelerator.device_count()


def cuda_cards() -> list[Card]:
    """Return the NVIDIA cards that CUDA shows, as the driver's management library names them.

    Where CUDA is initialized already, it is asked itself.
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
    if driver is None or driver.cuda[0] < int(torch.version.cuda.split(".")[0]):
        return []  # a driver too old for this torch: CUDA would not start
    return visible_cards(driver.cards, os.environ.get("CUDA_VISIBLE_DEVICES"))


def rocm_cards() -> list[Card]:
    """Return the AMD cards that ROCm counts; it names them once it runs."""
    count = torch.cuda.device_count()
    if torch.cuda.is_initialized():
        known = map(torch.cuda.get_device_properties, range(count))
        return [Card(card.name, card.total_memory, card.gcnArchName) for card in known]
    return [Card("AMD graphics card")] * count


def xla_tpus() -> list[Card]:
    """Return the TPU devices that torch_xla will show, from a scan of the PCI bus and of /dev."""
    if os.environ.get("PJRT_DEVICE", "TPU") != "TPU" or not xla_matches_torch():
        return []
    found = []
    for chip in machine.tpu_chips():
        name, devices, memory_gib = machine.TPU_CHIPS[chip]
        detail = f"1 of {devices} devices of its chip" if devices > 1 else "one chip"
        memory_bytes = None if memory_gib is None else memory_gib * 2**30
        found += [Card(name, memory_bytes, detail)] * devices
    return found


def can_rehearse() -> bool:
    """Say whether torch_xla can compile and run on this CPU in place of a TPU."""
    default = "TPU" if machine.tpu_chips() else "CPU"
    return os.environ.get("PJRT_DEVICE", default) == "CPU" and xla_matches_torch()


def xla_matches_torch() -> bool:
    """Say whether torch_xla is installed and was made for the minor version of this torch."""
    xla = machine.read_package("torch_xla")
    return bool(xla.version) and xla.minor == machine.Package(torch.__version__).minor


def torch_tpus() -> list[Card]:
    """Return TorchTPU's devices.

    It is asked only where the machine has a TPU: off Google's cloud its answer can hang.
    """
    chips = machine.tpu_chips()
    current = torch.accelerator.current_accelerator() if chips else None
    if current is None or current.type != "tpu":
        return []
    name = machine.TPU_CHIPS[chips[0]][0]
    return [Card(name, detail="through TorchTPU")] * torch.accelerator.device_count()


def xpus() -> list[Card]:
    """Return Intel's graphics cards where torch was built for them; XPU names them once it runs."""
    if not torch.xpu.is_available():
        return []
    count = torch.xpu.device_count()
    if torch.xpu.is_initialized():
        known = map(torch.xpu.get_device_properties, range(count))
        return [Card(card.name, card.total_memory, f"{card.gpu_eu_count} cores") for card in known]
    return [Card("Intel graphics card")] * count


def mps_gpus() -> list[Card]:
    """Return the graphics part of Apple's chip, which shares the computer's memory."""
    if not torch.backends.mps.is_available():
        return []
    memory_bytes = machine.host_memory_bytes()
    return [Card(f"GPU of {machine.cpu_name()}", memory_bytes, "memory shared with the CPU")]
