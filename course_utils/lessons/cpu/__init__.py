"""What lesson 1 needs beside the helper package: its pictures, the timeline, and the work of a paired timing."""

from course_utils.lessons.cpu.pictures import draw_series, draw_stack
from course_utils.lessons.progress import progress
from course_utils.paired import Work
from course_utils.timeline import timeline

__all__ = ["Work", "draw_series", "draw_stack", "progress", "timeline"]
