"""Facts about this machine, from files and environment variables alone; no driver is asked."""

from __future__ import annotations

import ctypes
import functools
import importlib.metadata
import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path

# of /sys, /proc and /dev; the tests put copies of other machines' files in its place
ROOT = Path("/")
GOOGLE = "0x1ae0"  # on the PCI bus

# PCI device numbers of TPU chips, as torch_xla 2.9 (torch_xla/_internal/tpu.py) and JAX
# (jax/_src/hardware_utils.py) list them: name, devices of one chip, memory of one device in GiB
# (cloud.google.com/tpu/docs). A chip of 7x has two devices again (Google's page on TPU7x;
# vllm-project/tpu-inference, pull 1266), where torch_xla 2.9 still counts one.
TPU_CHIPS = {
    "": ("TPU", 1, None),  # only its device file shows it
    "0x0027": ("TPU v2 or v3", 2, None),
    "0x005e": ("TPU v4", 1, 32),
    "0x0062": ("TPU v5p", 1, 95),
    "0x0063": ("TPU v5e", 1, 16),
    "0x006f": ("TPU v6e", 1, 32),
    "0x0076": ("TPU 7x", 2, 96),
}


def tpu_chips() -> list[str]:
    """Return the PCI model number of each TPU chip, or "" where only a device file shows it."""
    return list(_tpu_chips(ROOT))


@functools.cache  # no chip comes or goes while a program runs, and `to_device` asks for each batch
def _tpu_chips(root: Path) -> tuple[str, ...]:
    google = [model for vendor, model, _ in pci_devices(root) if vendor == GOOGLE]
    chips = [model for model in google if model in TPU_CHIPS]
    return tuple(chips or ["" for _ in (root / "dev").glob("accel[0-9]*")])


def cpu_name() -> str:
    """Return the CPU's model name, or its architecture where the system does not name it."""
    if platform.system() == "Darwin":
        return _sysctl("machdep.cpu.brand_string") or platform.machine()
    # The first processor's entry is enough, and this file grows with the number of processors.
    cpuinfo = read_text(ROOT / "proc/cpuinfo", 4096)
    found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return found[1].strip() if found else platform.processor() or platform.machine()


def usable_cores() -> int:
    """Return the number of cores that this process may use, within its container's limit."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    for quota, period in _quotas():
        cores = min(cores, max(1, quota // period))
    return cores


def host_memory_bytes() -> int:
    """Return the bytes of memory that this process may use, within its container's limit."""
    limits = [*_limits("", "memory.max"), *_limits("memory", "memory.limit_in_bytes")]
    return min([_physical_memory_bytes(), *(int(limit) for limit in limits if limit.isdigit())])


def _quotas() -> list[tuple[int, int]]:
    """Return each limit of cores: the time on cores, and in how much time by the clock."""
    pairs = [limit.split() for limit in _limits("", "cpu.max")]  # such as "50000 100000"
    periods = _limits("cpu", "cpu.cfs_period_us")
    pairs += [list(pair) for pair in zip(_limits("cpu", "cpu.cfs_quota_us"), periods, strict=False)]
    # "max" and -1 are no limits
    return [(int(pair[0]), int(pair[1])) for pair in pairs if all(map(str.isdigit, pair))]


def _limits(controller: str, name: str) -> list[str]:
    """Return what a file of control groups says: of this process's group and of all above it.

    Version 2 has one tree of groups and "" for a controller, version 1 a tree for each controller
    (Linux documentation, cgroup-v2 and cgroup-v1). In a container its own group is the top.
    """
    found = []
    for line in read_text(ROOT / "proc/self/cgroup").splitlines() or ["0::/"]:
        _, controllers, path = line.split(":", 2)  # such as 4:memory:/docker/1f2e
        if controller in controllers.split(","):
            top = ROOT / "sys/fs/cgroup" / controller
            group = top / path.strip("/")
            folders = [group, *group.parents] if ".." not in path else [top]
            found = [folder for folder in folders if folder.is_relative_to(top)]
    return [text.strip() for folder in found if (text := read_text(folder / name))]


def user_name() -> str:
    """Return the user's name, or one made of the number of a user who has none in this system."""
    import getpass

    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):  # such as in `docker run --user 1001`
        return f"user-{os.getuid() if hasattr(os, 'getuid') else 0}"


def version_of(package: str) -> str:
    """Return the version of an installed package, or "" without one; nothing is imported."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def read_text(path: Path, limit: int = 65536) -> str:
    """Return the first `limit` characters of a file, or "" where it cannot be read."""
    try:
        with open(path, errors="replace") as file:
            return file.read(limit)
    except OSError:
        return ""


def pci_devices(root: Path) -> Iterator[tuple[str, ...]]:
    """Yield the numbers of each device on the PCI bus: of its vendor, model and class."""
    for folder in sorted((root / "sys/bus/pci/devices").glob("*")):
        yield tuple(read_text(folder / name).strip() for name in ("vendor", "device", "class"))


def _physical_memory_bytes() -> int:
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    # MEMORYSTATUSEX (Windows documentation): two 32-bit numbers, then seven of 64 bits, the first
    # being all memory.
    status = (ctypes.c_uint64 * 8)()
    ctypes.cast(status, ctypes.POINTER(ctypes.c_uint32))[0] = ctypes.sizeof(status)
    ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined]
    return status[1]


def _sysctl(name: str) -> str:
    value, size = ctypes.create_string_buffer(256), ctypes.c_size_t(256)
    status = ctypes.CDLL(None).sysctlbyname(
        name.encode(), value, ctypes.byref(size), None, ctypes.c_size_t(0)
    )
    return "" if status else value.value.decode(errors="replace")
