"""What XLA's counters say of a piece of work."""

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

from course_utils.xla import XLACounters, import_torch_xla, xla_counters

if TYPE_CHECKING:
    import pandas as pd


def counted(work: Callable[[], object]) -> XLACounters:
    """Run `work()`, send what it has recorded off to XLA, and return by how much the counters rose."""
    before = xla_counters()
    result = work()
    import_torch_xla().sync()
    del result  # held until here: XLA leaves out what nobody holds
    return xla_counters() - before


def compare(**works: Callable[[], object]) -> "pd.DataFrame":
    """Run several pieces of work in turn, and return a table of what XLA counted for each, by its name."""
    import pandas as pd

    rows = {name.replace("_", " "): asdict(counted(work)) for name, work in works.items()}
    return pd.DataFrame.from_dict(rows, orient="index").drop(columns="compile_s")
