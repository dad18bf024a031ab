"""What lesson 5 needs beside the helper package: the parts of its timers that it takes apart."""

from course_utils.devices import usable_cores
from course_utils.lessons.progress import progress
from course_utils.paired import Work
from course_utils.timing import format_seconds, using_threads

__all__ = ["Work", "format_seconds", "progress", "usable_cores", "using_threads"]
