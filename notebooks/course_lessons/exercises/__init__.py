"""The frame of the exercises: read an answer, name the mistake, give hints, show a solution."""

# Only while the lessons are being rewritten: each name is imported from its home.
from course_lessons.exercises.frame import Exercise, Mistakes, Verdict, exercise

__all__ = ["Exercise", "Mistakes", "Verdict", "exercise"]
