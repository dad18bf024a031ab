"""What lesson 3 needs beside the helper package: its pictures, the cores to share out, and the estimate."""

from course_utils.devices import usable_cores
from course_utils.estimate.counting import count_work
from course_utils.estimate.parallel import scaling
from course_utils.lessons.multi_gpu.pictures import draw_all_reduce, draw_gains
from course_utils.lessons.progress import progress
from course_utils.timeline import Timeline

__all__ = ["Timeline", "count_work", "draw_all_reduce", "draw_gains", "progress", "scaling", "usable_cores"]
