"""The frame of the exercises: read an answer, say what is wrong with it, give hints, show a
solution.
"""

from course_lessons.exercises.frame import Exercise, Mistakes, Verdict, exercise

__all__ = ["Exercise", "Mistakes", "Verdict", "exercise"]
