"""A clock for the parts of a training loop."""

import time

from course_utils.devices import Device, wait_for


class LapTimer:
    """Adds up the seconds that each part of a loop takes, with the device's work in it."""

    def __init__(self, device: Device):
        self.device = device
        self.seconds: dict[str, float] = {}  #: by the name of the part
        self._start = time.perf_counter()

    def end(self, part: str) -> None:
        """Wait for the device, and count the time since the last end for this part."""
        wait_for(self.device)
        now = time.perf_counter()
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self._start
        self._start = now
