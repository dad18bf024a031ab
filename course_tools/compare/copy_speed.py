"""Measure what a copy between the host's memory and a device costs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from course_utils.devices import Device, as_device
from course_utils.kinds import kind_called
from course_utils.timing import time_call
from course_utils.transfers import to_device
from course_utils.units import format_seconds

COPY_SIZES_BYTES = tuple(4**power for power in range(5, 14))  # 1 KiB to 64 MiB


@dataclass(frozen=True)
class Copy:
    """The time of one copy, from the call until the data have arrived."""

    #: "to the device", "from the device", or "in memory" where there is no device but the CPU
    direction: str
    pinned: bool  #: whether the host's side was pinned memory
    size_bytes: int
    median_s: float
    warnings: tuple[str, ...] = ()  #: why the figure is unreliable

    @property
    def rate_gb_per_s(self) -> float:
        """Bytes that arrive per second, in units of 10^9."""
        return self.size_bytes / self.median_s / 1e9


@dataclass(frozen=True)
class CopyRate:
    """The cost of copies between the host's memory and a device, by size."""

    device: str  #: its name, such as "cuda"
    copies: tuple[Copy, ...]

    def curves(self) -> dict[tuple[str, bool], list[Copy]]:
        """Return the copies by direction and pinned or not, smallest first."""
        curves: dict[tuple[str, bool], list[Copy]] = {}
        for item in sorted(self.copies, key=lambda item: item.size_bytes):
            curves.setdefault((item.direction, item.pinned), []).append(item)
        return curves

    def __repr__(self) -> str:
        lines = [f"copies on {self.device}:"]
        for (direction, pinned), curve in self.curves().items():
            name = f"{direction}, pinned" if pinned else direction
            largest = curve[-1]
            lines.append(
                f"  {name}: at least {format_seconds(latency(curve))} each, and "
                f"{largest.rate_gb_per_s:.3g} GB/s for {largest.size_bytes:,} bytes"
            )
        doubts = [copy.warnings[0] for copy in self.copies if copy.warnings]
        if doubts:
            share = f"{len(doubts)} of {len(self.copies)} figures"
            lines.append(f"  unreliable: {share}. First: '{doubts[0]}'")
        return "\n".join(lines)


def latency(copies: Sequence[Copy]) -> float:
    """Return the seconds that a copy costs whatever its size: those of the fastest copy.

    A single small copy is often slower than one of a few kilobytes.
    """
    return min(copy.median_s for copy in copies)


def copy_rate(
    device: Device | torch.device | str | None = None,
    *,
    sizes_bytes: Iterable[int] | int = COPY_SIZES_BYTES,
    max_s: float = 0.1,
) -> CopyRate:
    """Measure copies from the host's memory to a device and back, with and without pinned memory.

    Each copy is waited for, so its time holds the latency and the bytes. A CPU has no other memory
    to copy to, so there it measures copies within the host's memory.

    >>> rate = copy_rate("cpu", sizes_bytes=[1024], max_s=0.01)
    >>> rate.copies[0].direction, rate.copies[0].size_bytes
    ('in memory', 1024)

    Args:
        device: a `Device`, a `torch.device` or its name; None takes the best one here.
        sizes_bytes: how much to copy; one size or several.
        max_s: seconds to spend on each size and direction, about.

    Raises:
        ValueError: no sizes, or one that is not a positive number of bytes; or as `pick_device`
            does.
        RuntimeError: as `pick_device` does.
    """
    sizes_bytes = (sizes_bytes,) if isinstance(sizes_bytes, int) else tuple(sizes_bytes)
    if not sizes_bytes or min(sizes_bytes) < 1:
        raise ValueError(f"copy_rate needs sizes of at least 1 byte, but got {sizes_bytes}.")
    device = as_device(device)
    copies = []
    for pinned in (False, True) if kind_called(device.kind).pins else (False,):
        for size_bytes in sizes_bytes:
            for direction, fn in _copiers(device, size_bytes, pinned).items():
                timing = time_call(fn, device=device, max_s=max_s)
                copies.append(Copy(direction, pinned, size_bytes, timing.median_s, timing.warnings))
    return CopyRate(str(device), tuple(copies))


def _copiers(device: Device, size_bytes: int, pinned: bool) -> dict[str, Callable[[], object]]:
    """Return a function without arguments for each direction, which copies `size_bytes`."""
    # Random bytes, all of them touched: memory that was never written costs nothing to read.
    host = torch.randint(256, (size_bytes,), dtype=torch.uint8, pin_memory=pinned, device="cpu")
    kind = kind_called(device.kind)
    if kind.host:
        return {"in memory": partial(host.clone().copy_, host)}
    there = to_device(host, device)
    if kind.lazy:  # copy_ would be recorded as a program; these two are plain transfers
        return {"to the device": partial(to_device, host, device), "from the device": there.cpu}
    return {
        "to the device": partial(there.copy_, host),
        "from the device": partial(host.copy_, there),
    }
