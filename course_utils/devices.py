"""Find, choose and wait for a device."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace

import torch

from course_utils.hardware import detect
from course_utils.hardware.machine import cpu_name, host_memory_bytes, usable_cores
from course_utils.kinds import KINDS, kind_called
from course_utils.tables import html_card, text_table
from course_utils.units import format_bytes

HEADER = ("device", "name", "memory", "detail")


@dataclass(frozen=True)
class Device:
    """One device that PyTorch can use here."""

    kind: str  #: one of `course_utils.kinds.KINDS`, such as "cuda"
    index: int  #: which device of its kind, counted from 0
    name: str  #: what a person calls it, such as "NVIDIA H200"
    memory_bytes: int | None = None  #: memory it can use, or None where that is not known
    detail: str = ""  #: core count or compute capability, in words
    rehearsal: bool = False  #: True for XLA compiling and running on this CPU, in place of a TPU

    @property
    def torch_device(self) -> torch.device:
        """The `torch.device` to give to `.to(...)`."""
        return _torch_device(self.kind, self.index)

    def __str__(self) -> str:
        return str(self.torch_device)

    def _repr_html_(self) -> str:
        return html_card("Device", HEADER, [_row(self)])


class DeviceList(list[Device]):
    """Devices, best first: a list that prints as a table, and in a notebook as a card."""

    def __repr__(self) -> str:
        return text_table(HEADER, [_row(device) for device in self])

    def _repr_html_(self) -> str:
        return html_card("Devices here, best first", HEADER, [_row(device) for device in self])


def find_devices() -> DeviceList:
    """Return every device that PyTorch can use here, best first, without starting any of them.

    PyTorch counts them. Their names and memory come from the driver's management library and from
    files, so no context is made on a GPU, torch_xla is not imported and no network is used. A card
    that these cannot tie to one of PyTorch's devices is described once PyTorch has started it. A
    listed device is not yet known to work: the doctor of this course runs a kernel on each.

    >>> [device.kind for device in find_devices() if device.kind == "cpu"]
    ['cpu']
    """
    devices = [
        Device(kind, index, card.name, card.memory_bytes, card.detail)
        for kind, index, card in detect.accelerators()
    ]
    cpu = _cpu()
    devices.append(cpu)
    if detect.can_rehearse():
        name = f"rehearsal of a TPU: XLA on {cpu.name}"
        devices.append(replace(cpu, kind="xla", name=name, rehearsal=True))
    return DeviceList(devices)


def pick_device(name: str | torch.device | None = None) -> Device:
    """Return the device called `name`, or the best one here.

    >>> pick_device("cpu").torch_device
    device(type='cpu')

    Args:
        name: such as "cpu", "cuda", "cuda:1" or `torch.device("cuda")`. A name without an index
            means PyTorch's current device of that kind, which is the first one unless your program
            has set another. None takes the device that the variable `COURSE_DEVICE` names, or
            without it PyTorch's current accelerator, or without one the CPU; never the rehearsal.

    Raises:
        ValueError: the name is not the name of any kind of device.
        RuntimeError: the device asked for is not in this machine. There is no silent fallback.
    """
    chosen = as_torch_device(name)
    if KINDS[chosen.type].host:
        return _cpu()
    return next(device for device in find_devices() if device.torch_device == chosen)


def as_device(device: Device | torch.device | str | None) -> Device:
    """Return the `Device` that is meant, for who needs its name and memory too.

    Args:
        device: a `Device`, a `torch.device`, a name, or None for the best one here.

    Raises:
        ValueError, RuntimeError: as `pick_device` does.
    """
    return device if isinstance(device, Device) else pick_device(device)


def as_torch_device(device: Device | torch.device | str | None) -> torch.device:
    """Return the `torch.device` that is meant, as `pick_device` chooses it, in microseconds.

    Raises:
        ValueError, RuntimeError: as `pick_device` does.
    """
    if isinstance(device, Device):
        return device.torch_device
    requested, advice = "was requested", "Pass None to take the best one."
    if device is None and os.environ.get("COURSE_DEVICE"):
        device = os.environ["COURSE_DEVICE"]
        requested = "was requested by the variable COURSE_DEVICE"
        advice = "Unset COURSE_DEVICE to take the best one."
    if device is None:
        return _current_device()
    name = str(device)  # of a torch.device too
    match = re.fullmatch(r"([a-z]+)(?::([0-9]+))?", name)
    if not match or match[1] not in KINDS:
        raise ValueError(
            f"device {name!r} {requested}, but that names no kind of device. "
            f"Write one of {', '.join(KINDS)}, with an index if you like: 'cuda:1'."
        )
    kind = match[1]
    index = int(match[2]) if match[2] else detect.current_index(kind)
    if index < _count(kind):
        return _torch_device(kind, index)
    doctor = f" The course's doctor says why {name} is missing, and what to do."
    others = [str(one) for one in find_devices() if not KINDS[one.kind].host]
    here = " and ".join(["cpu", *others])
    raise RuntimeError(
        f"device {name!r} {requested}, but this machine has {here}. {advice}"
        + ("" if KINDS[kind].host else doctor)
    )


def wait_for(device: Device | torch.device | str | None = None) -> None:
    """Block until `device` has finished everything that was asked of it; None waits for the best.

    A CPU operation has finished when its call returns. CUDA, MPS and XPU only queue it, and XLA
    only records it. On XLA this also runs what was recorded; `torch_xla.sync(wait=True)` alone
    returns before an XLA:CPU program has run (measured with torch_xla 2.9.0).

    >>> wait_for("cpu")
    """
    device = as_torch_device(device)
    kind = KINDS[device.type]
    if kind.lazy:
        import torch_xla
        from torch_xla.core import xla_model

        torch_xla.sync()
        xla_model.wait_device_ops()
    elif not kind.host:
        torch.accelerator.synchronize(device)


def _torch_device(kind: str, index: int) -> torch.device:
    return torch.device(kind) if kind_called(kind).host else torch.device(kind, index)


def _current_device() -> torch.device:
    """Return PyTorch's current accelerator, a TPU, or the CPU."""
    kind, count = detect.torch_accelerator()
    if count:
        return torch.device(kind, detect.current_index(kind))
    return torch.device("xla", 0) if detect.xla_tpus() else torch.device("cpu")


def _count(kind: str) -> int:
    if KINDS[kind].host:
        return 1
    if KINDS[kind].lazy:
        return len(detect.xla_tpus()) or int(detect.can_rehearse())
    torch_kind, count = detect.torch_accelerator()
    return count if kind == torch_kind else 0


def _cpu() -> Device:
    return Device("cpu", 0, cpu_name(), host_memory_bytes(), f"{usable_cores()} cores")


def _row(device: Device) -> tuple[str, ...]:
    return (str(device), device.name, format_bytes(device.memory_bytes), device.detail)
