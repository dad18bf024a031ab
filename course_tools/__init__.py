"""Tools of the accelerator course: why a GPU is missing, who is faster, and what a job would take.

Each tool is a folder that imports `course_utils` and no other tool. The names that lessons and
programs use most can be had from here, and are imported when they are first asked for.
"""

from course_utils.lazy_names import lazy_names

_HOMES = {
    "compare_devices": "compare.comparison",
    "copy_rate": "compare.copy_speed",
    "TimedCall": "compare.time_together",
    "time_together": "compare.time_together",
    "diagnose": "doctor.diagnose",
}

__all__ = [*_HOMES]
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
