"""What lesson 3 needs beside the helper package: its picture and the cores to share out."""

from course_utils.devices import usable_cores
from course_utils.lessons.multi_gpu.pictures import draw_gains
from course_utils.lessons.progress import progress

__all__ = ["draw_gains", "progress", "usable_cores"]
