"""NVIDIA cards as their driver's management library (NVML) describes them, without CUDA.

NVML is the library behind `nvidia-smi`. Its functions are described in NVIDIA's NVML API Reference
Guide.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

if os.name == "nt":
    LIBRARY, CUDA_LIBRARY = "nvml.dll", "nvcuda.dll"
else:
    LIBRARY, CUDA_LIBRARY = "libnvidia-ml.so.1", "libcuda.so.1"


@dataclass(frozen=True)
class Card:
    """One accelerator, as its driver or the system's files describe it."""

    name: str  # such as "NVIDIA H200"
    memory_bytes: int | None = None  # None if the driver does not report it
    detail: str = ""  # such as "compute capability 9.0"
    uuid: str = ""  # such as "GPU-8f6d...", which CUDA_VISIBLE_DEVICES may name


@dataclass(frozen=True)
class Driver:
    """The NVIDIA driver: its version, the newest CUDA that it runs as (12, 8), and its cards."""

    version: str
    cuda: tuple[int, int]
    cards: tuple[Card, ...]  # in PCI order


def read_driver() -> Driver | None:
    """Return what the NVIDIA driver reports, or None where there is no working driver."""
    nvml = _load()
    if nvml is None or nvml.nvmlInit_v2() != 0:
        return None
    cuda, count, cards = ctypes.c_int(), ctypes.c_uint(), []
    nvml.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(cuda))
    nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
    for index in range(count.value):
        handle = ctypes.c_void_p()
        if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) == 0:
            cards.append(_card(nvml, handle))
    version = _text(nvml.nvmlSystemGetDriverVersion)
    return Driver(version, split_version(cuda.value), tuple(cards))


def split_version(number: int) -> tuple[int, int]:
    """Return CUDA's version from the driver's way to write it: 12080 is (12, 8)."""
    return number // 1000, number % 1000 // 10


def visible_cards(cards: Sequence[Card], setting: str | None) -> list[Card]:
    """Return the cards that CUDA shows under a setting of CUDA_VISIBLE_DEVICES.

    The rules are CUDA's (CUDA C Programming Guide, "CUDA Environment Variables"): the list ends at
    the first entry that names no card.

    Args:
        cards: in PCI order.
        setting: the variable's value, or None if it is not set.
    """
    if setting is None:
        return list(cards)
    chosen: list[Card] = []
    for entry in setting.split(","):
        card = _named(cards, entry.strip())
        if card is None:
            break
        chosen.append(card)
    return chosen


def _named(cards: Sequence[Card], entry: str) -> Card | None:
    if entry.isdigit():
        return cards[int(entry)] if int(entry) < len(cards) else None
    matches = [card for card in cards if entry.startswith("GPU-") and card.uuid.startswith(entry)]
    return matches[0] if len(matches) == 1 else None  # any beginning that only one card has


def _load() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError:
        return None


def _card(nvml: ctypes.CDLL, handle: ctypes.c_void_p) -> Card:
    name, uuid = _text(nvml.nvmlDeviceGetName, handle), _text(nvml.nvmlDeviceGetUUID, handle)
    memory = (ctypes.c_ulonglong * 3)()  # total, free, used
    has_memory = nvml.nvmlDeviceGetMemoryInfo(handle, memory) == 0
    major, minor = ctypes.c_int(), ctypes.c_int()
    ask = nvml.nvmlDeviceGetCudaComputeCapability
    if ask(handle, ctypes.byref(major), ctypes.byref(minor)) == 0:
        detail = f"compute capability {major.value}.{minor.value}"
    else:
        detail = "compute capability not reported"
    return Card(name, memory[0] if has_memory else None, detail, uuid)


def _text(ask: Callable, *handle: ctypes.c_void_p) -> str:
    buffer = ctypes.create_string_buffer(96)
    ask(*handle, buffer, 96)
    return buffer.value.decode("utf-8", errors="replace")
