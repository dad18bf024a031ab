"""What belongs to one lesson, a folder for each: its exercises, its pictures, and the code that
only it needs.

`course_lessons.<lesson>` offers the names that the notebook imports; its `exercises` are imported
as `ex`.
"""
