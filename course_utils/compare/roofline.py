"""What limits a device: its arithmetic or its memory, and where a piece of work stands below both.

Source: S. Williams, A. Waterman and D. Patterson, Roofline: An Insightful Visual Performance Model for Multicore
Architectures, Communications of the ACM 52(4), 2009.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from course_utils.compare.workloads import ELEMENTWISE, PRODUCT, Workload, build_seeded
from course_utils.devices import Device, pick_device
from course_utils.display.units import format_count
from course_utils.timing import time_call

# FLOP/s in fp32 without TF32, from the makers' data sheets; "A100" stands for all its forms.
DATA_SHEET_FLOP_PER_S = {"T4": 8.1e12, "V100": 15.7e12, "A100": 19.5e12, "L4": 30.3e12, "H100": 67e12, "H200": 67e12}


@dataclass(frozen=True)
class Roof:
    """What a device reached in its best cases.

    Attributes:
        device: its name.
        kind: its kind.
        flop_per_s: of the best product of matrices, in fp32.
        bytes_per_s: read and written, of the best elementwise operation on arrays larger than the caches.
        data_sheet_flop_per_s: what its maker says, for fp32; None where this course has no such figure.
    """

    device: str
    kind: str
    flop_per_s: float
    bytes_per_s: float
    data_sheet_flop_per_s: float | None = None

    @property
    def ridge(self) -> float:
        """FLOP for each byte from which on arithmetic is the limit, and memory below."""
        return self.flop_per_s / self.bytes_per_s


@dataclass(frozen=True)
class RooflinePoint:
    """Where one piece of work stands.

    Attributes:
        name: of the work.
        intensity: FLOP for each byte that its operations read and write, each operation for itself.
        flop_per_s: what it reached.
    """

    name: str
    intensity: float
    flop_per_s: float


def measure_roof(device: Device, *, max_s: float = 0.5) -> Roof:
    """Measure the most arithmetic and the most memory traffic of a device, in five measurements of about `max_s`."""
    small = device.kind == "cpu" or device.rehearsal
    sides = (512, 1024, 1536) if small else (4096, 8192)
    flop_per_s = max(PRODUCT.items(side) * _rate(PRODUCT, side, device, max_s) for side in sides)
    elements = (2**23, 2**24) if small else (2**26, 2**28)  # three arrays of 4 bytes an element each
    bytes_per_s = max(12 * count * _rate(ELEMENTWISE, count, device, max_s) for count in elements)
    said = next((flop for name, flop in DATA_SHEET_FLOP_PER_S.items() if name in device.name.split()), None)
    return Roof(device.name, device.kind, flop_per_s, bytes_per_s, said)


def roofline_point(workload: Workload, size: int, device: Device, *, max_s: float = 0.5) -> RooflinePoint:
    """Count what one call of a workload does, time it, and return where that stands."""
    flop, bytes_moved = count_work(build_seeded(workload, size, pick_device("cpu"), "fp32"))
    name = f"{workload.name} {size:,}" if size < 1e6 else f"{workload.name} {format_count(size)}"
    return RooflinePoint(name, flop / bytes_moved, flop * _rate(workload, size, device, max_s))


def _rate(workload: Workload, size: int, device: Device, max_s: float) -> float:
    return time_call(build_seeded(workload, size, device, "fp32"), device=device, max_s=max_s).rate_per_s


def count_work(fn: Callable[[], object]) -> tuple[float, float]:
    """Return the FLOP and the bytes of one call of `fn` on the CPU.

    FLOP: two for each multiply-add of products and convolutions, as torch counts them, and one for each result of an
    elementwise operation. Bytes: every operation's inputs and outputs. A compiler that joins operations moves less.
    """
    fn()  # the first call also makes what the optimizer keeps
    with FlopCounterMode(display=False) as products, _Traffic() as traffic:
        fn()
    return float(products.get_total_flops() + traffic.elementwise_flop), float(traffic.bytes_moved)


class _Traffic(TorchDispatchMode):
    """Adds up what each operation reads and writes."""

    def __init__(self):
        super().__init__()
        self.bytes_moved = self.elementwise_flop = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if not func.is_view and func is not torch.ops.aten._unsafe_view.default:
            # By identity: what an operation writes is an argument and the result when `out` is given.
            tensors = {id(tensor): tensor for tensor in _tensors((args, kwargs, out))}
            self.bytes_moved += sum(tensor.nbytes for tensor in tensors.values())
        if torch.Tag.pointwise in func.tags:
            self.elementwise_flop += sum(tensor.numel() for tensor in _tensors(out))
        return out


def _tensors(parts: object) -> Iterator[torch.Tensor]:
    if isinstance(parts, torch.Tensor):
        yield parts
    elif isinstance(parts, (list, tuple, dict)):
        for part in parts.values() if isinstance(parts, dict) else parts:
            yield from _tensors(part)
