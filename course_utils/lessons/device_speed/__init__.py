"""What lesson 5 needs beside the helper package: published curves, and the parts of its timers that it takes apart."""

from course_utils.compare.measurement import Measurement
from course_utils.compare.results import Result
from course_utils.devices import usable_cores
from course_utils.estimate.speeds import published
from course_utils.lessons.progress import progress
from course_utils.paired import Work
from course_utils.timeline import timeline
from course_utils.timing import format_seconds, using_threads

__all__ = [
    "Work",
    "format_seconds",
    "progress",
    "published",
    "published_curve",
    "timeline",
    "usable_cores",
    "using_threads",
]


def published_curve(device: str, precision: str, model: str, workload: str) -> Result:
    """Return what others published of a forward pass over the batch, to be drawn beside one's own `workload`.

    Args:
        device: a chip, by its name in the published table.
        precision: such as "fp32".
        model: the network, by the name that pytorch-image-models gives it.
        workload: the name of one's own work, to which the curve belongs.
    """
    rows = published(device=device, precision=precision, model=model, training=False, compiled=False)
    label = f"{device.split()[0]}, {precision} (published)"
    found = (
        Measurement(
            workload, precision, row.batch, "batch", "images", row.batch, label, "cuda", device, None, row.step_s
        )
        for row in sorted(rows, key=lambda row: row.batch)
    )
    return Result(tuple(found), origin="published", source=f"{rows[0].source}, {rows[0].file}")
