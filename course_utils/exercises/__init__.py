"""Exercises that check themselves, one module a lesson: `from course_utils.lessons.cpu import exercises as ex`."""

from course_utils.exercises.exercise import Exercise, Verdict
from course_utils.exercises.progress import LESSONS, Progress, exercises_of, progress

__all__ = ["LESSONS", "Exercise", "Progress", "Verdict", "exercises_of", "progress"]
