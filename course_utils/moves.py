"""Move nested data to a device, say where it is, and measure what a copy costs."""

import copy
import dataclasses
import importlib.util
from collections import Counter, UserDict, UserList, deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch.nn.utils.rnn import PackedSequence

from course_utils.devices import KINDS, Device, pick_device
from course_utils.text import format_seconds
from course_utils.timing import time_call
from course_utils.xla import start_xla

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
# what batches hold most often besides tensors
PLAIN = frozenset({str, bytes, int, float, bool, type(None)})
COPY_SIZES_BYTES = tuple(4**power for power in range(5, 14))  # 1 KiB to 64 MiB
# devices whose driver can read the host's memory by itself, once it is pinned
PINNABLE = ("cuda", "xpu")


def to_device(
    obj: T, device: Device | torch.device | str | None, *, non_blocking: bool = False
) -> T:
    """Return `obj` with every tensor in it on `device`, and everything else as it was.

    It looks into dicts, lists, tuples, named tuples, deques, dataclasses and their subclasses.
    Anything with a method `.to` is moved by that method: a module in place, as `module.to` does,
    which on XLA gives it new parameters (lesson 4). A tensor that occurs twice is moved once and
    stays shared, but two views of one storage become two tensors. Containers are copied, never
    changed. Any other object is returned as it is, without a look inside.

    Args:
        obj: a tensor, or any nesting of containers around tensors.
        device: where to; a `Device`, its name, a `torch.device`, or None for the best one here.
        non_blocking: queue each copy and return before it has ended. It helps when the tensor is
            pinned: the device then fetches it while Python goes on. Copies to the CPU always wait,
                since a number that is read
            before it has arrived would be wrong.

    Raises:
        ValueError: `device` does not name a kind of device, or `obj` contains itself.
        RuntimeError: the device is not in this machine.
    """
    target = _torch_device(device)
    try:
        return _walk(obj, _mover(target, non_blocking and target.type != "cpu"))
    except RecursionError:
        raise _endless(obj) from None
    except (RuntimeError, AssertionError):  # a build without CUDA raises the latter
        if target.type in KINDS:
            pick_device(str(target))  # says so when the device is not there
        raise


def _walk(node: Any, move: Callable[[Any], Any]) -> Any:
    """Return a copy of `node` in which `move` has replaced everything that has a method `.to`."""
    kind = type(node)
    if kind in PLAIN:
        return node
    if kind is dict:
        return {key: _walk(part, move) for key, part in node.items()}
    if kind is list or kind is tuple:
        return kind([_walk(part, move) for part in node])
    if hasattr(kind, "to"):
        return move(node)
    if isinstance(node, tuple):
        parts = [_walk(part, move) for part in node]
        return kind._make(parts) if hasattr(kind, "_make") else kind(parts)
    if isinstance(node, dict | UserDict | list | UserList | deque):
        result = copy.copy(node)
        for key, part in node.items() if isinstance(node, dict | UserDict) else enumerate(node):
            result[key] = _walk(part, move)
        return result
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        twin = copy.copy(node)
        for field in dataclasses.fields(node):  # object's own way, for frozen ones too
            object.__setattr__(twin, field.name, _walk(getattr(node, field.name), move))
        return twin
    return node


def _mover(target: torch.device, queue: bool) -> Callable[[Any], Any]:
    """Return a function that moves whatever has a method `.to`, each object once."""
    switches: dict[str, Any] = {"non_blocking": True} if queue else {}
    # id of an original: the original, so that its id stays taken, and its copy
    moved: dict[int, tuple[Any, Any]] = {}

    def move(leaf: Any) -> Any:
        if id(leaf) not in moved:
            result = (
                leaf.to(target, **switches) if isinstance(leaf, torch.Tensor) else leaf.to(target)
            )
            # some move in place and return nothing
            moved[id(leaf)] = leaf, leaf if result is None else result
        return moved[id(leaf)][1]

    return move


def device_of(obj: object) -> torch.device:
    """Return the one device that holds every tensor in `obj`: a tensor, a module, or any nesting of
    containers.

    Raises:
        ValueError: there is no tensor in it, its tensors are on several devices, or it contains
            itself.
    """
    try:
        places = list(_places(obj, "obj"))
    except RecursionError:
        raise _endless(obj) from None
    if not places:
        raise ValueError(f"this {type(obj).__name__} holds no tensor, so it is on no device.")
    counts = Counter(device for _, device in places)
    if len(counts) == 1:
        return places[0][1]
    first = {device: path for path, device in reversed(places)}
    found = " and ".join(
        f"{count} on {device} (such as {first[device]})" for device, count in counts.items()
    )
    advice = "Move all of them to one: obj = to_device(obj, device)."
    raise ValueError(f"the tensors are on {len(counts)} devices: {found}. {advice}")


def _places(node: Any, path: str) -> Iterator[tuple[str, torch.device]]:
    """Yield how to write each tensor in `node`, and its device."""
    if isinstance(node, PackedSequence):  # its batch sizes stay on the CPU wherever the data are
        yield path, node.data.device
    elif isinstance(node, torch.nn.Module):
        for name, tensor in (*node.named_parameters(), *node.named_buffers()):
            yield f"{path}.{name}", tensor.device
    elif hasattr(type(node), "to") and isinstance(
        getattr(node, "device", None), str | torch.device
    ):
        yield path, torch.device(node.device)
    elif isinstance(
        node, dict | UserDict
    ):  # Hugging Face's tokenizers return one that has `to` and no `device`
        for key, part in node.items():
            yield from _places(part, f"{path}[{key!r}]")
    elif hasattr(node, "_fields") or (
        dataclasses.is_dataclass(node) and not isinstance(node, type)
    ):
        for name in getattr(node, "_fields", None) or [
            field.name for field in dataclasses.fields(node)
        ]:
            yield from _places(getattr(node, name), f"{path}.{name}")
    elif isinstance(node, list | UserList | tuple | deque):
        for index, part in enumerate(node):
            yield from _places(part, f"{path}[{index}]")


def _endless(obj: object) -> ValueError:
    return ValueError(
        f"this {type(obj).__name__} contains itself, or is nested too deeply to be walked through."
    )


@dataclasses.dataclass(frozen=True)
class Copy:
    """What one copy took, from the call until the data have arrived."""

    # "to the device", "from the device", or "in memory" where there is no device but the CPU
    direction: str
    pinned: bool  # whether the host's side was pinned memory
    size_bytes: int
    median_s: float
    warnings: tuple[str, ...] = ()  # why the figure is not to be trusted

    @property
    def rate_gb_per_s(self) -> float:
        """Bytes that arrive in a second, in units of 10^9."""
        return self.size_bytes / self.median_s / 1e9


@dataclasses.dataclass(frozen=True)
class CopyRate:
    """What copies between the host's memory and a device, such as "cuda:0", cost over sizes."""

    device: str
    copies: tuple[Copy, ...]

    def curves(self) -> dict[tuple[str, bool], list[Copy]]:
        """Return the copies by direction and pinned or not, smallest first."""
        curves: dict[tuple[str, bool], list[Copy]] = {}
        for item in sorted(self.copies, key=lambda item: item.size_bytes):
            curves.setdefault((item.direction, item.pinned), []).append(item)
        return curves

    def to_frame(self) -> "pd.DataFrame":
        """Return a pandas table with a row for each direction: latency, bandwidth, and the size
        where they meet.

        The latency is the time of the smallest copy, the bandwidth the rate of the largest. A copy
        of latency x bandwidth bytes spends as long on getting started as on its bytes.
        """
        import pandas as pd

        rows = []
        for (direction, pinned), curve in self.curves().items():
            latency_s, rate = curve[0].median_s, curve[-1].rate_gb_per_s
            rows.append((direction, pinned, latency_s * 1e6, rate, latency_s * rate * 1e6))
        columns = ["copy", "pinned", "latency_us", "bandwidth_gb_per_s", "break_even_kb"]
        return pd.DataFrame(rows, columns=columns).set_index(["copy", "pinned"])

    def __repr__(self) -> str:
        lines = [
            f"  {direction}{', pinned' if pinned else ''}: {format_seconds(curve[0].median_s)} for "
            f"{curve[0].size_bytes:,} bytes, {curve[-1].rate_gb_per_s:.3g} GB/s for {curve[-1].size_bytes:,} bytes"
            for (direction, pinned), curve in self.curves().items()
        ]
        if doubts := [copy.warnings[0] for copy in self.copies if copy.warnings]:
            lines.append(
                f"  not to be trusted: {len(doubts)} of {len(self.copies)} figures. First: '{doubts[0]}'"
            )
        return "\n".join([f"copies on {self.device}:", *lines])


def copy_rate(
    device: Device | torch.device | str | None = None,
    *,
    sizes_bytes: Sequence[int] = COPY_SIZES_BYTES,
    max_s: float = 0.1,
) -> CopyRate:
    """Measure copies from the host's memory to a device and back, from pinned memory too where that
    exists.

    Each copy is waited for, so its time holds the latency and the bytes. On a CPU, which has no
    other side to copy to, it measures copies from one place in memory to another.

    Args:
        device: a `Device`, a `torch.device` or its name; None takes the best one here.
        sizes_bytes: how much to copy.
        max_s: seconds to spend on each size and direction, about.

    Raises:
        ValueError: no sizes, or one that is not a positive number of bytes; or as `pick_device`
            does.
        RuntimeError: as `pick_device` does.
    """
    if not sizes_bytes or min(sizes_bytes) < 1:
        raise ValueError(f"copy_rate needs sizes of at least 1 byte, but got {tuple(sizes_bytes)}.")
    device = device if isinstance(device, Device) else pick_device(device)
    copies = []
    for pinned in (False, True) if device.kind in PINNABLE else (False,):
        for size_bytes in sizes_bytes:
            for direction, fn in _copiers(device, size_bytes, pinned).items():
                timing = time_call(fn, device=device, max_s=max_s)
                copies.append(Copy(direction, pinned, size_bytes, timing.median_s, timing.warnings))
    return CopyRate(str(device), tuple(copies))


def _copiers(device: Device, size_bytes: int, pinned: bool) -> dict[str, Callable[[], object]]:
    # Random bytes, all of them touched: a page of memory that was never written costs nothing to
    # read.
    host = torch.randint(256, (size_bytes,), dtype=torch.uint8, pin_memory=pinned, device="cpu")
    if device.kind == "cpu":
        return {"in memory": partial(host.clone().copy_, host)}
    there = to_device(host, device)
    if device.kind == "xla":  # copy_ would be recorded as a program; these two are plain transfers
        return {"to the device": partial(to_device, host, device), "from the device": there.cpu}
    return {
        "to the device": partial(there.copy_, host),
        "from the device": partial(host.copy_, there),
    }


def _torch_device(device: Device | torch.device | str | None) -> torch.device:
    device = pick_device() if device is None else device
    try:
        target = device.torch_device if isinstance(device, Device) else torch.device(device)
    except RuntimeError:
        target = pick_device(str(device)).torch_device  # its message names the devices there are
    if target.type == "xla" and importlib.util.find_spec("torch_xla"):
        start_xla()  # without it torch has no such device
    return target
