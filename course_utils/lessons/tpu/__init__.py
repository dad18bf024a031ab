"""What lesson 4 alone needs: its pictures, its exercises, and training on a mesh of devices (`spmd`)."""

from course_utils.lessons.needs import what_cells_need
from course_utils.lessons.progress import progress
from course_utils.lessons.tpu.pictures import (
    calls_until_xla_pays,
    draw_cache,
    draw_graph,
    draw_payoff,
    draw_shards,
)
from course_utils.timeline import Timeline

__all__ = [
    "Timeline",
    "calls_until_xla_pays",
    "draw_cache",
    "draw_graph",
    "draw_payoff",
    "draw_shards",
    "progress",
    "what_cells_need",
]
