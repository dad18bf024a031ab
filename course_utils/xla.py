"""XLA: whether it can run here, how to start it without side effects, and what it has done.

Nothing here imports torch_xla before it is needed.
"""

import functools
import importlib.util
import logging
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from types import ModuleType

import torch
from torch import nn

from course_utils.hardware.detect import can_rehearse, xla_matches_torch, xla_tpus
from course_utils.hardware.libpython import NAME, how_to_install, load_libpython
from course_utils.hardware.machine import tpu_chips, user_name, version_of
from course_utils.kinds import kind_called

# how .item() reads a value; torch_xla counts it as a fallback
READING = "aten::_local_scalar_dense"
# of PyTorch, what torch_xla 2.8 and later replace when they are imported (_patched_functions.py)
REPLACED = ((nn, "GRU"), (nn.utils, "clip_grad_norm_"))

_first_device: torch.device | None = None  # XLA's, from when `start_xla` has started it


def xla_problem() -> str | None:
    """Return one sentence on why torch_xla cannot be used here and what helps, or None.

    Nothing is ever installed or upgraded: torch_xla works only with the torch of the same minor
    version, and another torch would break whatever else this Python has built for the one it has.
    """
    if importlib.util.find_spec("torch_xla") is None:
        first = ""
        if _has_builds_for_this_machine() and load_libpython() is None:
            first = f"it needs {NAME}, so {how_to_install()}, and then "
        return f"torch_xla is not installed here: {first}{_fix('install')}."
    try:
        import_torch_xla()
    except (ImportError, OSError) as error:  # a wrong pair fails to load its library
        reason = str(error).strip().splitlines()[0].rpartition("/")[2]  # without the folder
        fault = f"does not load with torch {torch.__version__} ({reason})"
        if NAME in reason:
            return f"torch_xla {version_of('torch_xla')} {fault}: {how_to_install()}, and restart."
    else:
        if xla_matches_torch():
            return _pjrt_problem()
        fault = f"was not built for torch {torch.__version__}"
    return f"torch_xla {version_of('torch_xla')} {fault}: {_fix('replace')}."


def _pjrt_problem() -> str | None:
    """Return why the device that PJRT_DEVICE names cannot be used, or None."""
    asked = os.environ.get("PJRT_DEVICE")
    # libtpu, whose path these variables give, may see TPUs that we do not
    libtpu = any("TPU_LIBRARY_PATH" in name for name in os.environ)
    if can_rehearse() or xla_tpus() or (asked == "TPU" and libtpu):
        return None
    return f"PJRT_DEVICE is {asked!r}, but no such device was found: unset it, and restart."


@functools.cache
def import_torch_xla() -> ModuleType:
    """Import torch_xla without its side effects: no message, log handler or choice of device, and
    PyTorch's own `nn.GRU`, where torch_xla's fails on whatever is not XLA.

    A plain import without a TPU warns on stderr, sends every later warning there too, and sets
    PJRT_DEVICE=CPU for this process and all its children; so does this one where
    PJRT_SELECT_DEFAULT_DEVICE asks for it. With a TPU, PJRT_DEVICE=TPU is set as usual.

    Raises:
        ImportError: torch_xla is absent, or was built for another torch; `xla_problem` says what
            helps.
    """
    handlers = list(logging.root.handlers)
    try:
        load_libpython()  # torch_xla names it among what it needs, and not where it is
        no_choice = variable_default("PJRT_SELECT_DEFAULT_DEVICE", "0")
        # torch's compiler, which it imports, names a folder after the user
        with no_choice, variable_default("USER", user_name()):
            import torch_xla
    finally:
        logging.root.handlers[:] = handlers
    for owner, name in REPLACED:
        now = getattr(owner, name)
        setattr(owner, name, getattr(now, "_orig", now))  # where torch_xla keeps what it replaced
    if tpu_chips():  # looks at the PCI bus and at /dev, never at the network
        os.environ.setdefault("PJRT_DEVICE", "TPU")
    return torch_xla


def import_torch_xla_before_lightning() -> None:
    """Import torch_xla, if it is here, without the side effects that Lightning would cause.

    The first Trainer of a process imports torch_xla to ask it for a TPU, whichever device it will
    use itself, and goes on without one that does not load.
    """
    if importlib.util.find_spec("torch_xla"):
        with suppress(ImportError):
            import_torch_xla()


def start_xla() -> torch.device:
    """Start XLA on the TPU, or else on the CPU (the rehearsal), and return its first device.

    Call it before the first `.backward()` of the process, on whatever device: PyTorch sets its
    backward pass up once, for the devices that are known by then
    (https://github.com/pytorch/xla/issues/4174). `use_spmd()`, where it is wanted, comes before
    this. A second call returns the same and does nothing.

    Raises:
        ImportError: as `import_torch_xla` does.
        RuntimeError: there is another `xla_problem`, or there was a backward pass before.
    """
    global _first_device
    if _first_device is None:
        _first_device = _start_xla()
    return _first_device


def started_xla() -> torch.device | None:
    """Return XLA's first device if it has been started in this process, else None."""
    return _first_device


def _start_xla() -> torch.device:
    torch_xla = import_torch_xla()
    if problem := xla_problem():
        raise RuntimeError(f"XLA cannot start: {problem}")
    with variable_default("PJRT_DEVICE", "CPU"):
        device = torch_xla.device()
        probe = torch.ones(1, device=device, requires_grad=True)
        # under SPMD, the runtime starts with the first program and no sooner
        (probe.detach() + 1).cpu()
    try:
        probe.sum().backward()  # recorded, never run
    except RuntimeError as error:
        raise RuntimeError(
            "XLA was started too late: this process ran a backward pass before, and PyTorch can go "
            "backward only on the devices it knew by then. Restart the kernel and call "
            "course_utils.start_xla() in the first cell. Until then, name another device."
        ) from error
    return device


def run_recorded(device: torch.device) -> None:
    """Send the operations recorded for an XLA device off to be compiled and run.

    Each call ends one program and does not wait for it. On any other device it does nothing.
    """
    if kind_called(device.type).lazy:
        import torch_xla

        torch_xla.sync()


@dataclass(frozen=True)
class XLACounters:
    """Counts of what XLA has done since this process started.

    Subtract an earlier reading to see what a piece of code did.
    """

    compilations: int
    compile_s: float  # seconds spent compiling
    executions: int  # programs run
    to_device: int  # transfers from the host
    from_device: int  # transfers to the host
    # operations that XLA does not know: they ran on the CPU, with values copied there and back
    fallbacks: int

    def __sub__(self, before: "XLACounters") -> "XLACounters":
        names = [field.name for field in fields(self)]
        return XLACounters(**{name: getattr(self, name) - getattr(before, name) for name in names})

    def __repr__(self) -> str:
        return (
            f"{self.compilations} compiled, {self.executions} executed, "
            f"{self.to_device} to the device, {self.from_device} from it, "
            f"{self.fallbacks} fallbacks"
        )


def xla_counters() -> XLACounters:
    """Wait for the device, and return XLA's counters.

    Recorded but unexecuted operations are not included.
    """
    import_torch_xla()
    from torch_xla.core import xla_model
    from torch_xla.debug import metrics

    xla_model.wait_device_ops()  # an execution is counted when it ends

    def count(name: str) -> int:
        return (metrics.metric_data(name) or (0,))[0]

    unknown = [name for name in metrics.executed_fallback_ops() if name != READING]
    return XLACounters(
        compilations=count("CompileTime"),
        compile_s=(metrics.metric_data("CompileTime") or (0, 0))[1] / 1e9,
        executions=count("ExecuteTime") + count("ExecuteReplicatedTime"),  # the second under SPMD
        to_device=count("TransferToDeviceTime"),
        from_device=count("TransferFromDeviceTime"),
        fallbacks=sum(map(metrics.counter_value, unknown)),
    )


@contextmanager
def variable_default(name: str, value: str) -> Iterator[None]:
    """Set an environment variable inside the block, unless it is set already."""
    given = name in os.environ
    os.environ.setdefault(name, value)
    try:
        yield
    finally:
        if not given:
            os.environ.pop(name, None)


def _has_builds_for_this_machine() -> bool:
    return (platform.system(), platform.machine()) == ("Linux", "x86_64")


def _fix(verb: str) -> str:
    major, minor = map(int, torch.__version__.split(".")[:2])
    if not _has_builds_for_this_machine():
        return "it has builds for Linux on x86-64 only, so use it there, or on Colab or Kaggle"
    if (major, minor) > (2, 9):  # torch_xla 2.9.0, of November 2025, is its last release
        return (
            f"no torch_xla was made for torch {major}.{minor}, so leave this torch alone and use "
            "the course's own environment (make lab)"
        )
    if sys.version_info >= (3, 14):
        return "it has builds for Python 3.11 to 3.13 only, so use one of those"
    return (
        f"{verb} it with `pip install torch_xla=={major}.{minor}.0`, which leaves torch alone, "
        "and restart"
    )
