"""What belongs to one lesson, a folder for each: its exercises, its pictures, and the code that only it needs.

`course_utils.lessons.<lesson>` offers the names that the notebook imports; a folder's `exercises.py` is imported as
`from course_utils.lessons.<lesson> import exercises as ex`.
"""
