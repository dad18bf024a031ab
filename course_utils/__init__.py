"""Helpers of the accelerator course: find a device, move data, time honestly, and launch.

A public name is imported when it is first asked for, so `import course_utils` costs next to
nothing, and works where torch does not start.
"""

from course_utils.lazy_names import lazy_names

TYPE_CHECKING = False  # in place of typing's, as in `lazy_names`
if TYPE_CHECKING:
    from course_utils.devices import Device as Device
    from course_utils.devices import find_devices as find_devices
    from course_utils.devices import pick_device as pick_device
    from course_utils.devices import wait_for as wait_for
    from course_utils.launch.parent import RunError as RunError
    from course_utils.launch.parent import run_training as run_training
    from course_utils.launch.request import LaunchError as LaunchError
    from course_utils.lightning import trainer_kwargs as trainer_kwargs
    from course_utils.timing import Timing as Timing
    from course_utils.timing import time_call as time_call
    from course_utils.transfers import to_device as to_device
    from course_utils.xla import start_xla as start_xla
    from course_utils.xla import xla_counters as xla_counters
    from course_utils.xla import xla_problem as xla_problem

_HOMES = {
    "Device": "devices",
    "find_devices": "devices",
    "pick_device": "devices",
    "wait_for": "devices",
    "to_device": "transfers",
    "Timing": "timing",
    "time_call": "timing",
    "trainer_kwargs": "lightning",
    "start_xla": "xla",
    "xla_counters": "xla",
    "xla_problem": "xla",
    "run_training": "launch.parent",
    "LaunchError": "launch.request",
    "RunError": "launch.parent",
}

__all__ = [*_HOMES]
__version__ = "0.2.0"
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
