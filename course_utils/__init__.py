"""Helpers of the accelerator course: find a device, move data, time honestly, train, and launch."""

from course_utils.devices import Device, find_devices, pick_device, wait_for
from course_utils.timing import Timing, time_call

__all__ = ["Device", "Timing", "find_devices", "pick_device", "time_call", "wait_for"]
__version__ = "0.1.0"
