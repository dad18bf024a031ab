"""Lesson 6, Is it worth it?: its pictures, its panel and its exercises."""

from course_lessons.exercises.progress import progress
from course_lessons.worth_it.panel import RentalPanel
from course_lessons.worth_it.pictures import (
    draw_bars,
    draw_crossover,
    draw_held_out,
    draw_money,
    draw_roofs,
    draw_scaling,
    draw_sweep,
    draw_three_limits,
    error_factor,
)
