"""Estimate the time and money that a job takes on a device that you do not have.

    from course_tools.estimate import estimate
    estimate(model, inputs, batch=64, samples=50_000, devices=["T4", "RTX 4090"])

In a terminal: `python -m course_tools.estimate --help`.

To read it, follow a question: `job` (what is asked) and `estimate_job` (the way to the answer),
then the four subjects in this order, each a folder. `counting` runs a step on tensors without data
and adds up its operations, bytes and kernels (`work.Work`). `time` makes seconds of these sums
(`step_time`), with the published measurements that they were compared with and the factor by which
they may be off (`error_factor`). `memory` follows the same step for what it holds and whether that
fits. `money` has prices, what is free, and the rule by which a device is chosen. `chips` is the
table of data sheets, `row` and `result` are the answer. Language models need no counting: their
shape (`language_model`) is enough for `finetuning` and `inference`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from course_tools.estimate.chips import Chip, find_chip
from course_tools.estimate.job import Job, Machine
from course_tools.estimate.time.step_time import step_time

if TYPE_CHECKING:
    from course_tools.estimate.counting.count_work import count_work
    from course_tools.estimate.estimate_job import estimate
    from course_tools.estimate.finetuning import estimate_finetuning
    from course_tools.estimate.inference import estimate_inference
    from course_tools.estimate.memory.estimate_memory import estimate_memory
    from course_tools.estimate.money.buy_or_rent import buy_or_rent

__all__ = [
    "Chip",
    "Job",
    "Machine",
    "buy_or_rent",
    "count_work",
    "estimate",
    "estimate_finetuning",
    "estimate_inference",
    "estimate_memory",
    "find_chip",
    "step_time",
]
# These are imported when they are first asked for: three of them need torch.
_HOMES = {
    "buy_or_rent": "money.buy_or_rent",
    "count_work": "counting.count_work",
    "estimate": "estimate_job",
    "estimate_finetuning": "finetuning",
    "estimate_inference": "inference",
    "estimate_memory": "memory.estimate_memory",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
