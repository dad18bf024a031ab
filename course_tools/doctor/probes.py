"""Probes for child processes, since they can hang or kill Python."""

from __future__ import annotations

import contextlib
import ctypes
from dataclasses import asdict
from types import ModuleType

from course_tools.doctor.packages import read_package
from course_tools.doctor.run_child import tell
from course_utils.hardware.libpython import load_libpython
from course_utils.hardware.nvidia import CUDA_LIBRARY, read_driver


def run(name: str) -> None:
    """Run the function below of this name, and report the error that ends it."""
    try:
        globals()[name]()
    except BaseException as error:
        tell(error=_message(error))


def nvidia() -> None:
    """Ask NVIDIA's management library, which needs neither torch nor CUDA."""
    tell(step="asking the NVIDIA driver's management library")
    if driver := read_driver():
        tell(**asdict(driver))


def cpu() -> None:
    """Import torch, run a kernel on the CPU, and list the devices."""
    _import_torch()
    _try_kernels(["cpu"])
    tell(step="listing the devices")
    with contextlib.suppress(Exception):  # the list is for the reader, and no part of the verdict
        from course_utils.devices import find_devices

        tell(devices=[{"device": str(device), **asdict(device)} for device in find_devices()])


def cuda() -> None:
    """Initialize CUDA (or ROCm) and run a kernel on every card."""
    tell(step="loading the driver")
    if not read_package("torch").hip:
        ctypes.CDLL(CUDA_LIBRARY)  # initializes nothing
    torch = _import_torch()
    tell(step="starting CUDA")
    torch.cuda.init()
    tell(archs=torch.cuda.get_arch_list())
    cards = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    for card in cards:
        name = torch.cuda.get_device_name(card)
        capability = torch.cuda.get_device_capability(card)
        tell(**{card: {"name": name, "capability": capability}})
    _try_kernels(cards)


def mps() -> None:
    """Run a kernel on the graphics part of Apple's chip."""
    backend = _import_torch().backends.mps
    tell(built=backend.is_built(), available=backend.is_available())
    _try_kernels(["mps"])


def xpu() -> None:
    """Run a kernel on every Intel graphics card."""
    torch = _import_torch()
    tell(step="counting XPU devices")
    _try_kernels([f"xpu:{index}" for index in range(torch.xpu.device_count())])


def xla() -> None:
    """Import torch_xla, and compile and run a kernel on its first device."""
    _import_torch()
    tell(step="importing torch_xla")
    load_libpython()
    import torch_xla
    import torch_xla.runtime

    tell(step="starting XLA's runtime")
    device = str(torch_xla.device())
    tell(hardware=torch_xla.runtime.device_type())
    _try_kernels([device])


def _import_torch() -> ModuleType:
    tell(step="importing torch")
    import torch

    return torch


def _try_kernels(devices: list[str]) -> None:
    for device in devices:
        tell(kernel={"device": device, **_compare_with_cpu(device)})


def _compare_with_cpu(device: str) -> dict:
    """Compute five things on the device and on the CPU, and return what failed or differed."""
    import torch

    # Small whole numbers: every sum below is exact in any precision, so the answers must be equal
    # to the bit.
    a = (torch.arange(16 * 16).reshape(16, 16) % 7).float()
    steps = {
        "a copy": lambda x: x.clone(),
        "an addition": lambda x: x + x,
        "a matrix product": lambda x: x @ x,
        "a convolution": lambda x: torch.nn.functional.conv2d(
            x[None, None], x[None, None, 1:2, 1:2]
        ),
        "a gradient": lambda x: torch.autograd.grad((x * x).sum(), x)[0],
    }
    for name, step in steps.items():
        tell(step=f"{name} on {device}")
        try:
            answer = step(a.to(device).requires_grad_()).detach().cpu()
        except Exception as error:
            return {"failed": name, "error": _message(error)}
        difference = (answer - step(a.clone().requires_grad_()).detach()).abs().max().item()
        if difference != 0:  # also true of NaN
            return {"wrong": name, "difference": str(difference)}
    return {}


def _message(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}".partition("\nCUDA kernel errors might")[0]
    return " ".join(text.split())[:600]
