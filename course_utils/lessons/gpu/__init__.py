"""What lesson 2 needs beside the helper package: its pictures, published speeds, and photographs to decode."""

from course_utils.devices import usable_cores
from course_utils.display.figures import lecture_axes, picture
from course_utils.estimate.chips import find_chip
from course_utils.estimate.speeds import published
from course_utils.lessons.gpu.photographs import Photographs
from course_utils.lessons.gpu.pictures import draw_batches, draw_copies, draw_lanes, draw_losses
from course_utils.lessons.progress import progress

__all__ = [
    "Photographs",
    "draw_batches",
    "draw_copies",
    "draw_lanes",
    "draw_losses",
    "find_chip",
    "lecture_axes",
    "picture",
    "progress",
    "published",
    "usable_cores",
]
