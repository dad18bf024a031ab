"""What lesson 3 needs beside the helper package: its picture, the cores to share out, and a quiet Lightning."""

from course_utils.devices import usable_cores
from course_utils.launch.fitting import calm_lightning
from course_utils.lessons.multi_gpu.pictures import draw_gains
from course_utils.lessons.progress import progress

__all__ = ["calm_lightning", "draw_gains", "progress", "usable_cores"]
