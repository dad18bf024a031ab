"""Helpers of the accelerator course: find a device, move data, time honestly, train, and launch."""

import sys

# These start where torch does not: to explain that is the doctor's work, and `extras` completes an installation.
if not (sys.argv[:1] == ["-m"] and {"course_utils.doctor", "course_utils.extras"} & set(sys.orig_argv)):
    from course_utils.devices import Device, find_devices, pick_device, wait_for
    from course_utils.doctor import diagnose
    from course_utils.timing import Timing, time_call

__all__ = ["Device", "Timing", "diagnose", "find_devices", "pick_device", "time_call", "wait_for"]
__version__ = "0.1.0"
