"""The same work on several devices: do they agree, who is faster, and from which size on?"""

from course_utils.lazy_names import lazy_names

_HOMES = {
    "compare_devices": "comparison",
    "WrongAnswer": "agreement",
    "Workload": "workloads",
    "Result": "results",
    "copy_rate": "copy_speed",
    "TimedCall": "paired_timing",
    "time_together": "paired_timing",
}

__all__ = [*_HOMES]
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
