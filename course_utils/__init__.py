"""Helpers of the accelerator course: find a device, move data, time honestly, compare, and launch.

The names below are imported when they are first asked for, so that the package itself starts where
torch does not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from course_utils.compare.comparison import compare_devices
    from course_utils.devices import Device, find_devices, pick_device, wait_for
    from course_utils.doctor import diagnose
    from course_utils.in_turn import time_together
    from course_utils.launch import run_lesson
    from course_utils.moves import copy_rate, device_of, to_device
    from course_utils.timing import Timing, time_call

_HOMES = {
    **dict.fromkeys(("Device", "find_devices", "pick_device", "wait_for"), "devices"),
    **dict.fromkeys(("to_device", "device_of", "copy_rate"), "moves"),
    **dict.fromkeys(("Timing", "time_call"), "timing"),
    "time_together": "in_turn",
    "compare_devices": "compare.comparison",
    "diagnose": "doctor",
    "run_lesson": "launch",
}

__all__ = [
    "Device",
    "Timing",
    "compare_devices",
    "copy_rate",
    "device_of",
    "diagnose",
    "find_devices",
]
__all__ += ["pick_device", "run_lesson", "time_call", "time_together", "to_device", "wait_for"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
