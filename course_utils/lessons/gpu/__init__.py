"""What lesson 2 needs beside the helper package: its pictures, published speeds, and photographs to decode."""

from course_utils.devices import usable_cores as usable_cores
from course_utils.display.figures import lecture_axes as lecture_axes
from course_utils.display.figures import picture as picture
from course_utils.estimate.chips import find_chip as find_chip
from course_utils.estimate.speeds import published as published
from course_utils.lessons.gpu.photographs import Photographs as Photographs
from course_utils.lessons.gpu.pictures import draw_batches as draw_batches
from course_utils.lessons.gpu.pictures import draw_copies as draw_copies
from course_utils.lessons.gpu.pictures import draw_lanes as draw_lanes
from course_utils.lessons.gpu.pictures import draw_losses as draw_losses
from course_utils.lessons.progress import progress as progress
