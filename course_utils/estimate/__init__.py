"""How long a job takes on a device that is not here, with what energy and for what money, and how
sure that is.

The package can be called: `from course_utils.estimate import estimate; estimate(model, inputs)`.
Its parts are beside it:

    count_work   operations, bytes and kernels of a step, counted without data
    step_time    from these to seconds on a chip
    find_chip    a chip by its name; all_chips lists them
    scaling      many devices
    estimate_memory   bytes instead of seconds: does it fit, and which is the largest batch that
    does published    speeds of real devices that others measured; estimate_published, the same
    steps estimated python -m course_utils.estimate   the same for a terminal
"""

import sys
from types import ModuleType

from course_utils.estimate.chips import all_chips, all_links, find_chip
from course_utils.estimate.counting import count_work
from course_utils.estimate.memory import estimate_memory
from course_utils.estimate.memory_model import capacity_bytes, memory_evidence
from course_utils.estimate.parallel import scaling
from course_utils.estimate.question import estimate
from course_utils.estimate.speeds import estimate_published, published, sources
from course_utils.estimate.steptime import fitted, step_time

__all__ = [
    "all_chips",
    "all_links",
    "capacity_bytes",
    "count_work",
    "estimate",
    "estimate_memory",
    "estimate_published",
    "find_chip",
    "fitted",
    "memory_evidence",
    "published",
    "scaling",
    "sources",
    "step_time",
]


class Callable(ModuleType):
    """A module that can be called, as the Python documentation shows (Customizing module attribute
    access).
    """

    __call__ = staticmethod(estimate)


sys.modules[__name__].__class__ = Callable
