"""What is special about XLA: start it without side effects, and count what it compiled and ran.

Nothing here imports torch_xla until it is asked to.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import torch


def import_torch_xla() -> ModuleType:
    """Import torch_xla and leave the process as it was: no message, no log handler, no choice of device.

    A plain import without a TPU warns on stderr, sends every later warning there too, and sets PJRT_DEVICE=CPU for
    this process and all its children. With a TPU, PJRT_DEVICE=TPU is set as usual.

    Returns:
        The module torch_xla.

    Raises:
        ImportError: torch_xla is absent, or was built for another torch.
    """
    handlers = list(logging.root.handlers)
    with variable_set("PJRT_SELECT_DEFAULT_DEVICE", "0"):
        import torch_xla
    logging.root.handlers[:] = handlers
    from torch_xla._internal import tpu

    if tpu.num_available_chips() > 0:  # looks at the PCI bus, never at the network
        os.environ.setdefault("PJRT_DEVICE", "TPU")
    return torch_xla


def start_xla() -> torch.device:
    """Start XLA on the TPU, or without one on its CPU compiler (the rehearsal), and return its first device.

    Call it before the first `.backward()` of the process, on whatever device: PyTorch sets its backward pass up
    once, for the devices that are known by then (https://github.com/pytorch/xla/issues/4174).

    Raises:
        ImportError: as `import_torch_xla` does.
        RuntimeError: there was a backward pass before.
    """
    torch_xla = import_torch_xla()
    with variable_set("PJRT_DEVICE", os.environ.get("PJRT_DEVICE", "CPU")):
        device = torch_xla.device()
    try:
        torch.ones(1, device=device, requires_grad=True).sum().backward()  # recorded, never run
    except RuntimeError as error:
        raise RuntimeError(
            "XLA was started too late: this process had a backward pass before, and PyTorch prepares that for the "
            "devices it knows at the first one. Restart the kernel and call course_utils.xla.start_xla() in the "
            "first cell."
        ) from error
    return device


@contextmanager
def variable_set(name: str, value: str) -> Iterator[None]:
    """Give an environment variable this value inside the block, and the former one (or none) after it."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before
