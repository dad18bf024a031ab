"""Measurements as the comparison of devices keeps them, for the tests of what it does with them."""

from course_tools.compare.measurement import Measurement


def measured(*rounds_s: float, size: int = 16, **more) -> Measurement:
    """A measurement of a step on one thread of a CPU, whose rounds took so long; `more` replaces
    its other fields.
    """
    fields = {"workload": "CNN step", "precision": "fp32", "size_name": "batch", "unit": "samples"}
    fields |= {"label": "cpu, 1 thread", "kind": "cpu", "device": "a cpu", "threads": 1}
    return Measurement(size=size, items=float(size), rounds_s=rounds_s, **fields | more)
