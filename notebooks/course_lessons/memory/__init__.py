"""Lesson 7, Does it fit?: its measurement, its pictures, its panel and its exercises."""

import torch

from course_lessons.exercises.progress import progress
from course_lessons.memory.panel import BatchPanel
from course_lessons.memory.pictures import (
    draw_cure,
    draw_cures,
    draw_questions,
    draw_shards,
    draw_two_curves,
)
from course_lessons.memory.record import record_memory
from course_lessons.needs import NO_RANKS, what_cells_need
from course_utils.text import format_bytes

# Why no processes can share a model on a CPU here, or None where they can.
TOO_OLD = (
    f"on a CPU that takes torch 2.7, and this is {torch.__version__}."
    if torch.__version__ < "2.7"
    else None
)
NO_FSDP = NO_RANKS or TOO_OLD
