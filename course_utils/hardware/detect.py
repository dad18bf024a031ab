"""Count the accelerators that PyTorch can use here, and describe them, without starting any.

PyTorch alone decides which devices there are and in which order. Drivers and files only describe
what it counts, and a fact that they cannot tie to a device of PyTorch's is left out.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import torch

from course_utils.hardware import machine, nvidia
from course_utils.hardware.card import LATER, Card
from course_utils.hardware.libpython import find_libpython
from course_utils.kinds import KINDS


def torch_accelerator() -> tuple[str, int]:
    """Return the kind of accelerator that torch was built for, and how many of them it counts.

    The count starts no device. Without an accelerator it is ("cpu", 0).
    """
    current = torch.accelerator.current_accelerator()
    if current is None or current.type not in KINDS:
        return "cpu", 0
    kind = current.type
    count = torch.get_device_module(kind).device_count()
    if KINDS[kind].nvml and count and not is_running(kind) and _driver_is_too_old():
        count = 0
    return kind, count


def is_running(kind: str) -> bool:
    """Say whether this process has started torch's devices of a kind."""
    return KINDS[kind].has_context and torch.get_device_module(kind).is_initialized()


def current_index(kind: str) -> int:
    """Return the index of torch's current device of a kind: 0, unless the program set another."""
    return torch.get_device_module(kind).current_device() if is_running(kind) else 0


def accelerators() -> list[tuple[str, int, Card]]:
    """Return kind, index and description of every accelerator that torch can use, best first."""
    kind, count = torch_accelerator()
    found = [(kind, index, card) for index, card in enumerate(_describe(kind, count))]
    return found + [("xla", index, card) for index, card in enumerate(xla_tpus())]


def _describe(kind: str, count: int) -> list[Card]:
    """Return what is known of each of torch's `count` accelerators."""
    if count == 0:
        return []
    row = KINDS[kind]
    if row.shares_memory:
        memory_bytes = machine.host_memory_bytes()
        return [Card(f"GPU of {machine.cpu_name()}", memory_bytes, "memory shared with the CPU")]
    if is_running(kind):
        ask = torch.get_device_module(kind).get_device_properties
        return [_running_card(ask(index)) for index in range(count)]
    if row.nvml and not torch.version.hip:
        return nvidia.cards_of_cuda(nvidia.read_driver(), count)
    return [Card(f"{row.maker or kind} graphics card", detail=LATER)] * count


def _running_card(properties: Any) -> Card:
    detail = ""
    if torch.version.hip:
        detail = properties.gcnArchName
    elif hasattr(properties, "gpu_eu_count"):
        detail = f"{properties.gpu_eu_count} cores"
    elif hasattr(properties, "major"):
        detail = f"compute capability {properties.major}.{properties.minor}"
    return Card(properties.name, properties.total_memory, detail)


def _driver_is_too_old() -> bool:
    """Say whether CUDA would not start because torch was built for a newer CUDA than the driver's.

    The driver's library counts cards in that case too.
    """
    driver = nvidia.read_driver() if torch.version.cuda else None
    if driver is None or not any(driver.cuda):
        return False
    return driver.cuda[0] < int(str(torch.version.cuda).split(".")[0])


def xla_tpus() -> list[Card]:
    """Return the TPU devices that torch_xla will show, from a scan of the PCI bus and of /dev."""
    chips = machine.tpu_chips()
    if not chips or os.environ.get("PJRT_DEVICE", "TPU") != "TPU" or not _xla_can_load():
        return []
    found = []
    for chip in chips:
        name, devices, memory_gib = machine.TPU_CHIPS[chip]
        detail = f"1 of {devices} devices of its chip" if devices > 1 else "one chip"
        memory_bytes = None if memory_gib is None else memory_gib * 2**30
        found += [Card(name, memory_bytes, detail)] * devices
    return found


def can_rehearse() -> bool:
    """Say whether torch_xla can compile and run on this CPU in place of a TPU."""
    default = "TPU" if machine.tpu_chips() else "CPU"
    return os.environ.get("PJRT_DEVICE", default) == "CPU" and _xla_can_load()


def _xla_can_load() -> bool:
    return xla_matches_torch() and find_libpython() is not None


def xla_matches_torch() -> bool:
    """Say whether torch_xla is installed and was made for the minor version of this torch."""
    running = getattr(sys.modules.get("torch_xla"), "__version__", None)
    xla = running or machine.version_of("torch_xla")
    return bool(xla) and xla.split(".")[:2] == torch.__version__.split(".")[:2]
