"""Find, choose and wait for a device."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace

import torch

from course_utils.hardware import KINDS, detect
from course_utils.hardware.machine import cpu_name, host_memory_bytes, usable_cores
from course_utils.text import format_bytes, html_card, text_table

HEADER = ("device", "name", "memory", "detail")


@dataclass(frozen=True)
class Device:
    """One device that PyTorch can use here."""

    #: one of "cpu", "cuda" (also ROCm), "mps", "xpu", "xla" (a TPU or the rehearsal) and "tpu"
    # (TorchTPU)
    kind: str
    index: int  #: which device of its kind, counted from 0
    name: str  #: what a person calls it, such as "NVIDIA H200"
    #: memory that the device can use, or None when that is not known
    memory_bytes: int | None = None
    detail: str = ""  #: core count or compute capability, in words
    rehearsal: bool = False  #: True for XLA compiling and running on this CPU, in place of a TPU

    @property
    def torch_device(self) -> torch.device:
        """The `torch.device` to give to `.to(...)`."""
        return torch.device("cpu") if self.kind == "cpu" else torch.device(self.kind, self.index)

    def __str__(self) -> str:
        return str(self.torch_device)

    def _repr_html_(self) -> str:
        return html_card("Device", HEADER, [_row(self)])


# of Device; Python 3.8, on which the doctor starts too, knows no list[Device] here
class DeviceList(list):
    """Devices, best first: a list that shows itself as a table, and in a notebook as a card."""

    def __repr__(self) -> str:
        return text_table(HEADER, [_row(device) for device in self])

    def _repr_html_(self) -> str:
        return html_card("Devices here, best first", HEADER, [_row(device) for device in self])


def find_devices() -> DeviceList:
    """Return every device that this Python can use, best first, without starting any of them.

    Names and memory come from the driver's management library and from files, so CUDA is not
    initialized, torch_xla is not imported and no network is used. Being listed is not yet proof
    that a device works: `python -m course_utils.doctor` runs a kernel on each.
    """
    found = [
        Device(kind, i, one.name, one.memory_bytes, one.detail)
        for kind, i, one in detect.accelerators()
    ]
    found.append(cpu := _cpu())
    if detect.can_rehearse():
        found.append(
            replace(cpu, kind="xla", name=f"rehearsal of a TPU: XLA on {cpu.name}", rehearsal=True)
        )
    return DeviceList(found)


def pick_device(name: str | torch.device | None = None) -> Device:
    """Return the device called `name`, or the best one here.

    Args:
        name: such as "cpu", "cuda", "cuda:1" or `torch.device("cuda")`. None takes `COURSE_DEVICE`
            when that is set, else the best device, for which the rehearsal never counts.

    Raises:
        ValueError: the name is not the name of any kind of device.
        RuntimeError: the device asked for is not in this machine. There is no silent fallback.
    """
    asked, advice = "was requested", "Pass None to take the best one."
    if name is None and os.environ.get("COURSE_DEVICE"):
        name, asked = os.environ["COURSE_DEVICE"], "was requested by the variable COURSE_DEVICE"
        advice = "Unset COURSE_DEVICE to take the best one."
    if name is None:
        return next(device for device in find_devices() if not device.rehearsal)
    name = str(name)  # of a torch.device too
    match = re.fullmatch(rf"({'|'.join(KINDS)})(?::([0-9]+))?", name)
    if not match:
        raise ValueError(
            f"device {name!r} {asked}, but that names no kind of device. "
            f"Write one of {', '.join(KINDS)}, with an index if you like: 'cuda:1'."
        )
    kind, index = match[1], int(match[2] or 0)
    if (kind, index) == ("cpu", 0):
        return _cpu()  # it is always there, and the others need not be asked
    found = {str(device): device for device in find_devices()}
    if f"{kind}:{index}" in found:
        return found[f"{kind}:{index}"]
    here = " and ".join(sorted(found, key=lambda name: (name != "cpu", name)))
    raise RuntimeError(
        f"device {name!r} {asked}, but this machine has {here}. {advice} "
        f"To learn why it is missing: python -m course_utils.doctor --require {kind}"
    )


def wait_for(device: Device | torch.device | str) -> None:
    """Block until `device` has finished everything that was asked of it.

    A CPU operation has finished when its call returns. CUDA, MPS and XPU only queue it, and XLA
    only records it. On XLA this also runs what was recorded; `torch_xla.sync(wait=True)` alone
    returns before an XLA:CPU program has run (measured with torch_xla 2.9.0).
    """
    kind = device.kind if isinstance(device, Device) else torch.device(device).type
    if kind == "xla":
        import torch_xla
        from torch_xla.core import xla_model

        torch_xla.sync()
        xla_model.wait_device_ops()
    elif kind != "cpu":
        torch.accelerator.synchronize(
            device.torch_device if isinstance(device, Device) else torch.device(device)
        )


def _cpu() -> Device:
    return Device("cpu", 0, cpu_name(), host_memory_bytes(), f"{usable_cores()} cores")


def _row(device: Device) -> tuple[str, ...]:
    return (str(device), device.name, format_bytes(device.memory_bytes), device.detail)
