"""What XLA counts while a piece of work runs, and how long the stages of a step take."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import pandas as pd
import torch

from course_utils.xla import XLACounters, import_torch_xla, xla_counters


@dataclass(frozen=True)
class StepTime:
    """The stages of one training step on XLA, in seconds."""

    trace_s: float  # Python records the operations
    compile_s: float
    run_s: float


def counted(work: Callable[[], object]) -> XLACounters:
    """Run `work()`, send what it recorded to XLA, and return by how much the counters rose."""
    before = xla_counters()
    result = work()
    import_torch_xla().sync()
    del result  # held until here: XLA leaves out what nobody holds
    return xla_counters() - before


def compare(works: dict[str, Callable[[], object]]) -> pd.DataFrame:
    """Run several pieces of work in turn, and return a table of what XLA counted for each."""
    rows = {name: asdict(counted(work)) for name, work in works.items()}
    table = pd.DataFrame.from_dict(rows, orient="index")
    return table.drop(columns="compile_s")


def time_steps(
    step: Callable[[torch.Tensor, torch.Tensor], object],
    batches: Sequence[tuple[torch.Tensor, torch.Tensor]],
) -> list[StepTime]:
    """Run a training step for each batch, one program each, and time its stages.

    Args:
        step: records one training step on a batch of (inputs, targets) that is on the XLA device.
        batches: on the XLA device.
    """
    torch_xla = import_torch_xla()
    times = []
    for inputs, targets in batches:
        before = xla_counters()
        start = time.perf_counter()
        step(inputs, targets)
        recorded = time.perf_counter()
        torch_xla.sync()
        did = xla_counters() - before  # waits until the program has run
        end = time.perf_counter()
        run_s = end - recorded - did.compile_s
        times.append(StepTime(recorded - start, did.compile_s, run_s))
    return times
