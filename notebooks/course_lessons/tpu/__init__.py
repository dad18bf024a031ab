"""What lesson 4 alone needs: its pictures, its exercises, XLA's counts of a piece of work, and
training on a mesh.
"""

from collections.abc import Callable
from dataclasses import asdict

import pandas as pd

from course_lessons.exercises.progress import progress
from course_lessons.needs import what_cells_need
from course_lessons.tpu.pictures import (
    calls_until_xla_pays,
    draw_cache,
    draw_graph,
    draw_payoff,
    draw_shards,
)
from course_utils.timeline.record import Timeline
from course_utils.xla import XLACounters, import_torch_xla, xla_counters


def counted(work: Callable[[], object]) -> XLACounters:
    """Run `work()`, send what it has recorded off to XLA, and return by how much the counters
    rose.
    """
    before = xla_counters()
    result = work()
    import_torch_xla().sync()
    del result  # held until here: XLA leaves out what nobody holds
    return xla_counters() - before


def compare(**works: Callable[[], object]) -> pd.DataFrame:
    """Run several pieces of work in turn, and return a table of what XLA counted for each, by its
    name.
    """
    rows = {name.replace("_", " "): asdict(counted(work)) for name, work in works.items()}
    return pd.DataFrame.from_dict(rows, orient="index").drop(columns="compile_s")
