"""Estimate the time and money that a job takes on a device that you do not have.

    from course_tools.estimate import estimate
    estimate(model, inputs, batch=64, samples=50_000, devices=["T4", "RTX 4090"])

In a terminal: `python -m course_tools.estimate --help`.

To read it, follow a question. A demand (`demand.Demand`) is what a step asks of any chip: of a
network that was counted (`network`, with `counting` and `memory`), of a network that was counted
beforehand (`known_networks`), and of language models, whose shape is enough (`language`). A
`machine` is a chip of the table of data sheets (`chips`), with its number and link; after it
nobody sees a name. `time` makes seconds of the two, and says how far they may be off. An `answer`
adds prices; `answers` compares them, with `free`, `choice`, `advice` and `words`.
"""

from typing import TYPE_CHECKING

from course_utils.lazy_names import lazy_names

if TYPE_CHECKING:
    from course_tools.estimate.chips import Chip as Chip
    from course_tools.estimate.chips import find_chip as find_chip
    from course_tools.estimate.counting.count_work import count_work as count_work
    from course_tools.estimate.language.finetuning import estimate_finetuning as estimate_finetuning
    from course_tools.estimate.language.serving import estimate_serving as estimate_serving
    from course_tools.estimate.machine import Machine as Machine
    from course_tools.estimate.memory.estimate_memory import estimate_memory as estimate_memory
    from course_tools.estimate.network import estimate as estimate
    from course_tools.estimate.own_card import buy_or_rent as buy_or_rent
    from course_tools.estimate.time.step_time import step_time as step_time

# These are imported when they are first asked for: three of them need torch.
_HOMES = {
    "Chip": "chips",
    "Machine": "machine",
    "buy_or_rent": "own_card",
    "count_work": "counting.count_work",
    "estimate": "network",
    "estimate_finetuning": "language.finetuning",
    "estimate_memory": "memory.estimate_memory",
    "estimate_serving": "language.serving",
    "find_chip": "chips",
    "step_time": "time.step_time",
}

__all__ = [*_HOMES]
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
