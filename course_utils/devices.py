"""Find, choose and wait for a device."""

import importlib.util
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

import torch

KINDS = ("cpu", "cuda", "mps", "xpu", "xla", "tpu")


@dataclass(frozen=True)
class Device:
    """One device that PyTorch can use here.

    Attributes:
        kind: one of `KINDS`. "cuda" also stands for ROCm, "xla" for a TPU or the rehearsal through torch_xla.
        index: which device of its kind, counted from 0.
        name: what a person calls it, such as "NVIDIA H200".
        memory_bytes: memory that the device can use, or None when that is not known.
        detail: core count or compute capability, in words.
        rehearsal: True for XLA compiling and running on this CPU, in place of a TPU.
    """

    kind: str
    index: int
    name: str
    memory_bytes: int | None = None
    detail: str = ""
    rehearsal: bool = False

    @property
    def torch_device(self) -> torch.device:
        """The `torch.device` to give to `.to(...)`."""
        return torch.device("cpu") if self.kind == "cpu" else torch.device(self.kind, self.index)

    def __str__(self) -> str:
        return str(self.torch_device)


def find_devices() -> list[Device]:
    """Return every device that this Python can use, best first, without starting any of them."""
    return [*_accelerators(), *_xla(), _cpu()]


def pick_device(name: str | None = None) -> Device:
    """Return the device called `name`, or the best one here.

    Args:
        name: such as "cpu", "cuda" or "cuda:1". None takes `COURSE_DEVICE` when that is set, else the best
            device, for which the rehearsal never counts.

    Raises:
        ValueError: the name is not the name of any kind of device.
        RuntimeError: the device asked for is not in this machine. There is no silent fallback.
    """
    asker = "was requested"
    if name is None and os.environ.get("COURSE_DEVICE"):
        name, asker = os.environ["COURSE_DEVICE"], "was requested by the variable COURSE_DEVICE"
    found = find_devices()
    if name is None:
        return next(device for device in found if not device.rehearsal)
    match = re.fullmatch(rf"({'|'.join(KINDS)})(?::(\d+))?", name)
    if not match:
        raise ValueError(
            f"device {name!r} {asker}, but that names no kind of device. "
            f"Write one of {', '.join(KINDS)}, with an index if you like: 'cuda:1'."
        )
    kind, index = match[1], int(match[2] or 0)
    for device in found:
        if (device.kind, device.index) == (kind, index):
            return device
    here = " and ".join(str(device) for device in reversed(found))
    raise RuntimeError(
        f"device {name!r} {asker}, but this machine has {here}. Pass None to take the best one"
        + (", or unset COURSE_DEVICE." if "variable" in asker else ".")
    )


def wait_for(device: Device | torch.device | str) -> None:
    """Block until `device` has finished everything that was asked of it.

    A CPU operation has finished when its call returns. CUDA, MPS and XPU only queue it, and XLA only records it.
    On XLA this also runs what was recorded; `torch_xla.sync(wait=True)` alone returns before an XLA:CPU program
    has run (measured with torch_xla 2.9.0).
    """
    kind = device.kind if isinstance(device, Device) else torch.device(device).type
    if kind == "xla":
        import torch_xla
        from torch_xla.core import xla_model

        torch_xla.sync()
        xla_model.wait_device_ops()
    elif kind != "cpu":
        torch.accelerator.synchronize(getattr(device, "torch_device", device))


def cpu_name() -> str:
    """Return the CPU's model name as its maker writes it, or the architecture when nothing says more."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(errors="replace"), re.MULTILINE)
        if found:
            return found[1].strip()
    return platform.processor() or platform.machine()


def usable_cores() -> int:
    """Return how many cores this process may run on, which a container or a scheduler may have limited."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cpu() -> Device:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else None
    return Device("cpu", 0, cpu_name(), memory, f"{usable_cores()} cores")


def _accelerators() -> list[Device]:
    if not torch.accelerator.is_available():
        return []
    kind = torch.accelerator.current_accelerator().type
    return [Device(kind, index, kind.upper()) for index in range(torch.accelerator.device_count())]


def _xla() -> list[Device]:
    if importlib.util.find_spec("torch_xla") is None:
        return []
    return [Device("xla", 0, f"XLA on {cpu_name()}", rehearsal=True)]
