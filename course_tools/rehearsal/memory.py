"""The memory of a simulated card: counted as storages live and die, and full when it is full."""

from collections import Counter
from dataclasses import dataclass, field

import torch

from course_tools.rehearsal.lines import Spot

GIB = 1024**3


@dataclass
class SimulatedGpu:
    """One simulated GPU and the bytes of the tensors on it."""

    kind: str  #: "cuda", "mps" or "xpu"
    index: int
    total_bytes: int
    limited: bool  #: False if nobody gave a size: nothing is refused
    live_bytes: int = 0
    peak_bytes: int = 0  #: since torch.cuda.reset_peak_memory_stats
    highest_bytes: int = 0  #: since the rehearsal began
    made: Counter[Spot] = field(default_factory=Counter)  #: bytes alive, by who made them
    at_peak: Counter[Spot] = field(default_factory=Counter)
    copied_bytes: int = 0  #: alive when `at_peak` was copied: within 2 % of the highest

    def take(self, size: int, spot: Spot) -> None:
        """Count a storage in, or raise torch.OutOfMemoryError."""
        self.check(size)
        self.live_bytes += size
        self.made[spot] += size
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        if self.live_bytes > self.highest_bytes:
            self.highest_bytes = self.live_bytes
            if (
                self.live_bytes * 50 > self.copied_bytes * 51
            ):  # a copy for each small tensor would be slow
                self.at_peak = Counter(self.made)
                self.copied_bytes = self.live_bytes

    def free(self, size: int, spot: Spot) -> None:
        """Count a storage out."""
        self.live_bytes -= size
        self.made[spot] -= size

    def check(self, size: int) -> None:
        """Raise torch.OutOfMemoryError if so many bytes more do not fit."""
        if self.limited and self.live_bytes + size > self.total_bytes:
            error = RuntimeError if self.kind == "mps" else torch.OutOfMemoryError
            raise error(out_of_memory(self, size))


def out_of_memory(card: SimulatedGpu, asked: int) -> str:
    """Return PyTorch's message for memory that is full; each kind of GPU has its own."""
    live, total = card.live_bytes, card.total_bytes
    if card.kind == "mps":
        return (
            f"MPS backend out of memory (MPS allocated: {size_text(live)}, other allocations: "
            f"0 bytes, max allowed: {size_text(total)}). Tried to allocate {size_text(asked)} on "
            "private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for "
            "memory allocations (may cause system failure)."
        )
    full = (
        f"{card.kind.upper()} out of memory. Tried to allocate {size_text(asked)}. GPU "
        f"{card.index} has a total capacity of {size_text(total)} of which "
        f"{size_text(max(total - live, 0))} is free. "
    )
    if card.kind == "xpu":
        return (
            f"{full}Of the allocated memory {size_text(live)} is allocated by PyTorch, and 0 bytes "
            "is reserved by PyTorch but unallocated. Please use `empty_cache` to release all "
            "unoccupied cached memory."
        )
    return (
        f"{full}Including non-PyTorch memory, this process has {size_text(live)} memory in use. Of "
        f"the allocated memory {size_text(live)} is allocated by PyTorch, and 0 bytes is reserved "
        "by PyTorch but "
        "unallocated. If reserved but unallocated memory is large try setting "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
        "documentation for Memory Management  "
        "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
    )


def size_text(size: int) -> str:
    """Return bytes as PyTorch's allocator writes them: "2.00 GiB", "512 bytes"."""
    for name, unit in (("GiB", GIB), ("MiB", 1024**2), ("KiB", 1024)):
        if size >= unit:
            return f"{size / unit:.2f} {name}"
    return f"{size} bytes"
