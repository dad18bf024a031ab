"""What lesson 4 alone needs: its pictures, training on a mesh of devices (`spmd`), and a board that is not here."""

from typing import Any
from unittest import mock

from course_utils.lessons.needs import what_cells_need
from course_utils.lessons.progress import progress
from course_utils.lessons.tpu.pictures import calls_until_xla_pays, draw_board, draw_padding, draw_payoff

__all__ = [
    "calls_until_xla_pays",
    "draw_board",
    "draw_padding",
    "draw_payoff",
    "eight_pretended_cores",
    "progress",
    "what_cells_need",
]


def eight_pretended_cores(accelerator: type) -> Any:
    """Return a context manager in which Lightning's XLA accelerator counts eight cores, so that one can ask its parser.

    Args:
        accelerator: `XLAAccelerator` of Lightning.
    """
    counts = next(kind for kind in accelerator.__mro__ if "auto_device_count" in vars(kind))  # the one that parses
    return mock.patch.object(counts, "auto_device_count", return_value=8)
