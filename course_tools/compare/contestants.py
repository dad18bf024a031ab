"""Who takes part in a comparison: the CPU with one thread and with all, and the accelerators."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from course_utils.devices import Device, as_device, find_devices
from course_utils.kinds import kind_called
from course_utils.xla import start_xla

Devices = Sequence[Device | torch.device | str | None] | Device | torch.device | str | None


@dataclass(frozen=True)
class Contestant:
    """A device, with a number of CPU threads."""

    device: Device
    threads: int

    @property
    def label(self) -> str:
        """The name in tables and pictures."""
        if self.device.kind == "cpu":
            return f"cpu, {self.threads} thread{'s' if self.threads > 1 else ''}"
        return f"{self.device} (rehearsal)" if self.device.rehearsal else str(self.device)


def cpu_first() -> list[Device]:
    """Return every device here, the CPU first, since the others are compared with it.

    The rehearsal is no device of its own: it takes part where it is named.
    """
    real = [device for device in find_devices() if not device.rehearsal]
    return sorted(real, key=lambda device: device.kind != "cpu")


def find_contestants(devices: Devices = "all") -> list[Contestant]:
    """Return the contestants: the CPU once with one thread and once with all that are set, and
    each accelerator.

    "all" leaves out a TPU that this process can no longer start, with a warning.

    Raises:
        ValueError: a device has a name that does not exist.
        RuntimeError: a device is not in this machine, or XLA was named and cannot start.
    """
    if devices == "all":
        chosen = [
            device
            for device in cpu_first()
            if not kind_called(device.kind).lazy or _can_start_xla()
        ]
    elif isinstance(devices, Device | torch.device | str | None):
        chosen = [as_device(devices)]
    else:
        chosen = [as_device(device) for device in devices]
    found = []
    for device in dict.fromkeys(chosen):
        if kind_called(device.kind).lazy:
            start_xla()
        if device.kind == "cpu" and torch.get_num_threads() > 1:
            found.append(Contestant(device, 1))
        found.append(Contestant(device, torch.get_num_threads()))
    return found


def _can_start_xla() -> bool:
    try:
        start_xla()
    except RuntimeError as error:
        warnings.warn(f"the TPU takes no part: {error}", stacklevel=4)
        return False
    return True
