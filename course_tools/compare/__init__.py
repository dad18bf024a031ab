"""The same work on several devices: do they agree, who is faster, and from which size on?"""

from typing import TYPE_CHECKING

from course_utils.lazy_names import lazy_names

if TYPE_CHECKING:
    from course_tools.compare.agreement import WrongAnswer as WrongAnswer
    from course_tools.compare.comparison import compare_devices as compare_devices
    from course_tools.compare.paired_timing import TimedCall as TimedCall
    from course_tools.compare.paired_timing import time_together as time_together
    from course_tools.compare.results import Result as Result
    from course_tools.compare.workloads import Workload as Workload

_HOMES = {
    "compare_devices": "comparison",
    "WrongAnswer": "agreement",
    "Workload": "workloads",
    "Result": "results",
    "TimedCall": "paired_timing",
    "time_together": "paired_timing",
}

__all__ = [*_HOMES]
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
