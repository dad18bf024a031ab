"""What a device reaches at best: the two roofs of the roofline."""

from dataclasses import dataclass

from course_utils.compare.comparison import measure
from course_utils.compare.workloads import ELEMENTWISE, PRODUCT
from course_utils.devices import Device


@dataclass(frozen=True)
class Roof:
    """What a device reached in its best cases."""

    flop_per_s: float  #: of the best product of matrices, in fp32
    bytes_per_s: float  #: read and written, of the best elementwise operation on arrays larger than the caches


def measure_roof(device: Device, *, max_s: float = 0.5) -> Roof:
    """Measure the most arithmetic and the most memory traffic of a device, in five measurements of about `max_s`.

    Source: S. Williams, A. Waterman and D. Patterson, Roofline: An Insightful Visual Performance Model for Multicore
    Architectures, Communications of the ACM 52(4), 2009.
    """
    small = device.kind == "cpu" or device.rehearsal
    sides = (512, 1024, 1536) if small else (4096, 8192)
    flop_per_s = max(measure(device, PRODUCT, side, max_s=max_s).rate for side in sides)
    elements = (2**23, 2**24) if small else (2**26, 2**28)  # three arrays of 4 bytes an element each
    bytes_per_s = max(12 * measure(device, ELEMENTWISE, count, max_s=max_s).rate for count in elements)
    return Roof(flop_per_s, bytes_per_s)
