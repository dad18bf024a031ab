"""What lesson 1 needs beside the helper package: the drawing of its pictures, and the work of a paired timing."""

from course_utils.display.figures import LOOKS, MUTED, label_end, lecture_axes, picture
from course_utils.lessons.progress import progress
from course_utils.paired import Work

__all__ = ["LOOKS", "MUTED", "Work", "label_end", "lecture_axes", "picture", "progress"]
