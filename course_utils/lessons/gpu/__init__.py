"""What lesson 2 needs beside the helper package: its pictures, and how many cores the CPU has for it."""

from course_utils.devices import usable_cores
from course_utils.display.figures import lecture_axes, picture
from course_utils.lessons.gpu.pictures import draw_batches, draw_copies, draw_lanes, draw_losses, draw_rates
from course_utils.lessons.progress import progress

__all__ = [
    "draw_batches",
    "draw_copies",
    "draw_lanes",
    "draw_losses",
    "draw_rates",
    "lecture_axes",
    "picture",
    "progress",
    "usable_cores",
]
