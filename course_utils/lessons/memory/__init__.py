"""Lesson 7, Does it fit?: its measurement, its pictures, its panel and its exercises."""

from course_utils.display.units import format_bytes
from course_utils.lessons.memory.panel import BatchPanel
from course_utils.lessons.memory.pictures import draw_cure, draw_cures, draw_questions, draw_shards, draw_two_curves
from course_utils.lessons.memory.record import Record, record_memory
from course_utils.lessons.progress import progress

__all__ = [
    "BatchPanel",
    "Record",
    "draw_cure",
    "draw_cures",
    "draw_questions",
    "draw_shards",
    "draw_two_curves",
    "format_bytes",
    "progress",
    "record_memory",
]
