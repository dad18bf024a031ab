"""What lesson 5 needs beside the helper package: published curves, what a process has used, and
busy neighbours.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from course_lessons.exercises.progress import progress
from course_utils.compare.measurement import Measurement
from course_utils.compare.results import Result
from course_utils.devices import usable_cores
from course_utils.estimate.speeds import published
from course_utils.in_turn import Work
from course_utils.timeline.record import timeline
from course_utils.timing import format_seconds, using_threads


@contextmanager
def busy_neighbours() -> Iterator[None]:
    """Keep every core busy with another process until the block ends, or until this process does,
    however it ends.
    """
    code = "import os, threading as t\nt.Thread(target=lambda: os._exit(len(os.read(0, 1)))).start()\nwhile True: pass"
    started = [
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
        for _ in range(usable_cores())
    ]
    try:
        yield
    finally:
        for neighbour in started:
            neighbour.communicate()  # ends its input


def used_so_far() -> dict[str, float]:
    """Return this process's microseconds in its own code and in the system, and its page faults (0
    on Windows).
    """
    faults = 0
    with suppress(ModuleNotFoundError):  # Windows
        import resource

        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    spent = os.times()
    return {"user, µs": 1e6 * spent.user, "system, µs": 1e6 * spent.system, "page faults": faults}


def published_curve(device: str, precision: str, model: str, workload: str) -> Result:
    """Return what others published of a forward pass over the batch, to be drawn beside one's own
    `workload`.

    Args:
        device: a chip, by its name in the published table.
        precision: such as "fp32".
        model: the network, by the name that pytorch-image-models gives it.
        workload: the name of one's own work, to which the curve belongs.
    """
    rows = published(
        device=device, precision=precision, model=model, training=False, compiled=False
    )
    label = f"{device.split()[0]}, {precision} (published)"
    ran = sorted((row.batch, row.step_s) for row in rows)
    found = [
        Measurement(
            workload=workload,
            precision=precision,
            size=size,
            size_name="batch",
            unit="images",
            items=size,
            label=label,
            kind="cuda",
            device=device,
            rounds_s=(step_s,),
        )
        for size, step_s in ran
    ]
    return Result(tuple(found), origin="published", source=f"{rows[0].source}, {rows[0].file}")
