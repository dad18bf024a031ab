"""One accelerator of this machine, whoever made it."""

from __future__ import annotations

from dataclasses import dataclass

LATER = "its name and memory are known once it runs"  # the detail of a card that is not running


@dataclass(frozen=True)
class Card:
    """One accelerator, as its driver or the system's files describe it."""

    name: str  # such as "NVIDIA H200"
    memory_bytes: int | None = None  # None where it is not known
    detail: str = ""  # such as "compute capability 9.0"
    uuid: str = ""  # such as "GPU-8f6d...", which CUDA_VISIBLE_DEVICES may name
