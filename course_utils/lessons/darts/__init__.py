"""What lesson 8 needs beside the helper package: the guide's model, its pictures, and cells that need Darts or XLA."""

from course_utils.display.figures import LOOKS, MUTED, label_end, lecture_axes, picture
from course_utils.lessons.darts.guide import (
    GUIDE,
    QUIET,
    DartsNetwork,
    Forecaster,
    air_series,
    darts_order,
    darts_problem,
    many_series,
    training_step,
    untrained,
)
from course_utils.lessons.needs import what_cells_need
from course_utils.lessons.progress import progress
from course_utils.xla import start_xla, xla_problem

__all__ = [
    "GUIDE",
    "LOOKS",
    "MUTED",
    "QUIET",
    "DartsNetwork",
    "Forecaster",
    "air_series",
    "darts_order",
    "darts_problem",
    "label_end",
    "lecture_axes",
    "many_series",
    "picture",
    "progress",
    "start_xla",
    "training_step",
    "untrained",
    "what_cells_need",
    "xla_problem",
]
