"""NVIDIA cards as their driver's management library (NVML) describes them, without CUDA.

NVML is the library behind `nvidia-smi`. Its functions are described in NVIDIA's NVML API Reference
Guide.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from course_utils.hardware.card import LATER, Card

if os.name == "nt":
    LIBRARY, CUDA_LIBRARY = "nvml.dll", "nvcuda.dll"
else:
    LIBRARY, CUDA_LIBRARY = "libnvidia-ml.so.1", "libcuda.so.1"


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


def cards_of_cuda(driver: Driver | None, count: int) -> list[Card]:
    """Return what the driver says of the `count` cards that CUDA shows, in CUDA's order.

    The driver lists cards by their place on the PCI bus, CUDA by its own estimate of their speed
    (CUDA C Programming Guide, "CUDA Environment Variables"). Only a UUID, an order that was set,
    or cards that are all alike tie the one to the other; else a card has no facts but its possible
    names.
    """
    cards = driver.cards if driver else ()
    setting = os.environ.get("CUDA_VISIBLE_DEVICES")
    entries = [entry.strip() for entry in setting.split(",")] if setting else []
    alike = len({(card.name, card.memory_bytes, card.detail) for card in cards}) == 1
    found: list[Card | None] = []
    if entries and not entries[0].isdigit():
        found = [card_called(cards, entry) for entry in entries]
    elif alike:
        found = [cards[0]] * count
    elif cards and os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID":
        numbers = [int(entry) for entry in entries if entry.isdigit()] or range(len(cards))
        found = [cards[number] if number < len(cards) else None for number in numbers]
    names = " or ".join(dict.fromkeys(card.name for card in cards))
    unknown = Card(names or "NVIDIA graphics card", detail=LATER)
    found = [*found, *[None] * count][:count]
    return [card or unknown for card in found]


def card_called(cards: Sequence[Card], uuid: str) -> Card | None:
    """Return the card, or the MIG slice of one, with a UUID or with the only one that begins so."""
    if uuid.startswith("MIG-"):
        return _read_slice(uuid)
    matches = [card for card in cards if uuid.startswith("GPU-") and card.uuid.startswith(uuid)]
    return matches[0] if len(matches) == 1 else None


def _read_slice(uuid: str) -> Card | None:
    nvml, handle = _load(), ctypes.c_void_p()
    if nvml is None or nvml.nvmlInit_v2() != 0:
        return None
    found = nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle)) == 0
    return _card(nvml, handle) if found else None


def _load() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError:
        return None


def _card(nvml: ctypes.CDLL, handle: ctypes.c_void_p) -> Card:
    name, uuid = _text(nvml.nvmlDeviceGetName, handle), _text(nvml.nvmlDeviceGetUUID, handle)
    memory = (ctypes.c_ulonglong * 3)()  # total, free, used
    has_memory = nvml.nvmlDeviceGetMemoryInfo(handle, memory) == 0 and not _is_sliced(nvml, handle)
    major, minor = ctypes.c_int(), ctypes.c_int()
    ask = nvml.nvmlDeviceGetCudaComputeCapability
    if ask(handle, ctypes.byref(major), ctypes.byref(minor)) == 0:
        detail = f"compute capability {major.value}.{minor.value}"
    else:
        detail = "compute capability not reported"
    return Card(name, memory[0] if has_memory else None, detail, uuid)


def _is_sliced(nvml: ctypes.CDLL, handle: ctypes.c_void_p) -> bool:
    """Say whether a card is in MIG mode: CUDA then shows one of its slices in its place."""
    now, later = ctypes.c_uint(), ctypes.c_uint()
    ask = getattr(nvml, "nvmlDeviceGetMigMode", None)  # older drivers lack it
    known = ask is not None and ask(handle, ctypes.byref(now), ctypes.byref(later)) == 0
    return known and now.value == 1


def _text(ask: Callable, *handle: ctypes.c_void_p) -> str:
    buffer = ctypes.create_string_buffer(96)
    ask(*handle, buffer, 96)
    return buffer.value.decode("utf-8", errors="replace")
