"""What lesson 8 needs beside the helper package: its model, pictures, the estimate, and cells that need Darts."""

from course_utils.display.figures import LOOKS, MUTED, label_end, lecture_axes, picture
from course_utils.estimate.chips import find_chip
from course_utils.estimate.counting import count_work
from course_utils.estimate.steptime import step_time
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
from course_utils.lessons.worth_it import draw_crossover
from course_utils.xla import start_xla, xla_problem

__all__ = ["GUIDE", "LOOKS", "MUTED", "QUIET", "DartsNetwork", "Forecaster", "air_series", "count_work", "darts_order"]
__all__ += ["darts_problem", "draw_crossover", "find_chip", "label_end", "lecture_axes", "many_series", "picture"]
__all__ += ["progress", "start_xla", "step_time", "training_step", "untrained", "what_cells_need", "xla_problem"]
