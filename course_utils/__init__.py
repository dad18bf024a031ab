"""Helpers of the accelerator course: find a device, move data, time honestly, and launch.

A public name is imported when it is first asked for, so `import course_utils` costs next to
nothing, and works where torch does not start.
"""

from course_utils.lazy_names import lazy_names

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
