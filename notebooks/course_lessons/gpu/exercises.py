"""The exercises of lesson 2: a loop that keeps a GPU waiting, and a network that does not move."""

import copy
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from course_lessons.exercises.calls import READS, Calls
from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.read_answer import Wrong, expect, expect_pair, number_of, quote, same
from course_utils import transfers

BATCHES = 4
# Operations that take their sizes, or the places to read from, from tensors on the CPU.
INDEXED = ("aten::index", "aten::index_put", "aten::index_put_")
FREE = ("aten::copy_", "aten::_copy_from", "aten::_pack_padded_sequence")


class _Watch(Calls):
    """The calls of an answer, with what it copies to a device."""

    def __init__(self) -> None:
        super().__init__()
        self.copied: list[torch.dtype] = []
        self.blocking = 0

    def __torch_function__(self, function, types, args=(), kwargs=None) -> Any:
        if getattr(function, "__name__", "") in ("to", "cuda"):
            self.copied.append(args[0].dtype)
            self.blocking += not (kwargs or {}).get("non_blocking", args[-1] is True)
        return super().__torch_function__(function, types, args, kwargs)


class _OneDevice(TorchDispatchMode):
    """Within it, an operation on tensors of two devices fails as it would on a GPU.

    PyTorch's meta device lets a convolution, an embedding and a matrix product pass.
    """

    def __torch_dispatch__(self, function, types, args=(), kwargs=None) -> Any:
        name = function._schema.name
        # A GPU reads by indices on the CPU too.
        checked = args[:1] + args[2:] if name in INDEXED else args
        found = {str(x.device) for x in _tensors([*checked, *(kwargs or {}).values()]) if x.dim()}
        if len(found) > 1 and name not in FREE:
            where = " and ".join(sorted(found))
            raise RuntimeError(f"{name} takes tensors from two devices, {where}")
        return function(*args, **(kwargs or {}))


def _tensors(part: Any) -> list[torch.Tensor]:
    if isinstance(part, list | tuple):
        return [tensor for each in part for tensor in _tensors(each)]
    return [part] if isinstance(part, torch.Tensor) else []


def _names(function: Any) -> tuple[str, ...]:
    """Return the global names and attributes that the code of a function reads."""
    code = getattr(function, "__code__", None)
    return code.co_names if code else ()


def _small_training() -> tuple[nn.Module, list, torch.optim.Optimizer]:
    with torch.random.fork_rng([]):
        torch.manual_seed(1)
        network = nn.Sequential(nn.Flatten(), nn.Linear(48, 3))
        pixels = torch.randint(0, 256, (BATCHES, 8, 3, 4, 4), dtype=torch.uint8)
        labels = torch.randint(0, 3, (BATCHES, 8))
    network.register_forward_pre_hook(lambda _, inputs: inputs[0].float() / 255)  # takes bytes
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    return network, list(zip(pixels, labels, strict=True)), optimizer


def _train_plainly() -> tuple[float, nn.Module]:
    network, batches, optimizer = _small_training()
    total = 0.0
    for pixels, labels in batches:
        loss = nn.functional.cross_entropy(network(pixels), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / BATCHES, network


@exercise(
    "Copy bytes, copy while the device works, read once, and let PyTorch manage its memory.",
    "`.to(device, non_blocking=True)` without `.float()`, `total += loss.detach()`, and no call of "
    "torch.cuda in the loop.",
    solution="""
        def my_epoch(network, loader, optimizer, device):
            total = 0.0
            for pixels, labels in loader:
                pixels = pixels.to(device, non_blocking=True)
                labels = labels.to(device, non_blocking=True)
                loss = F.cross_entropy(network(pixels), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.detach()
            return float(total) / len(loader)
    """,
    right="The host now runs ahead of the device and waits once an epoch. Lesson 7 shows it as a "
    "picture, and finds such places in your own loop.",
)
def busy(answer: Any) -> Mistakes:
    """Repair my_epoch: remove four mistakes that keep a GPU waiting, and return the mean loss."""
    network, batches, optimizer = _small_training()
    # The course's own to_device blocks on a CPU, which stands for a GPU here.
    with patch.object(transfers, "BLOCKING", ()), _Watch() as watch:
        returned = answer(network, batches, optimizer, torch.device("cpu"))
    loss, trained = _train_plainly()
    pairs = zip(network.parameters(), trained.parameters(), strict=True)
    yield (
        not all(same(one, other) for one, other in pairs),
        "The network did not learn what it should: keep zero_grad, backward and step.",
    )
    yield (
        len(watch.copied) < 2 * BATCHES,
        "Pixels and labels of every batch have to be moved to `device`.",
    )
    yield (
        torch.float32 in watch.copied,
        "The pixels become float32 before they are copied: four times the bytes. Copy the bytes; "
        "the network converts them on the device.",
    )
    yield (
        watch.blocking,
        "The copies block: the host waits for each. The loader's memory is pinned, so pass "
        "non_blocking=True.",
    )
    yield (
        "empty_cache" in _names(answer),
        "empty_cache gives the memory back to the driver, and the next step asks for it again, "
        "which waits. PyTorch reuses it by itself.",
    )
    reads = watch.count(READS)
    yield (
        reads > 2,
        f"Values leave the device {reads} times, and each time the host waits. Add "
        "`loss.detach()` and read the sum once.",
    )
    given = number_of(returned, "the mean loss")
    yield abs(given - loss) > 1e-4, "That is not the mean loss of the epoch."


@exercise(
    "`.to(device)` moves parameters and buffers. Which tensor of the network is neither? And where "
    "is a tensor that `forward` creates?",
    '`self.register_buffer("mean", ...)` moves along, and `torch.randn_like(hidden)` is made where '
    "`hidden` is.",
    solution="""
        class Mine(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mean", torch.full((3, 1, 1), 127.0))
                self.layer = nn.Conv2d(3, 8, kernel_size=3)

            def forward(self, pixels):
                hidden = self.layer(pixels - self.mean)
                return hidden + 0.1 * torch.randn_like(hidden)


        my_network = (Mine(), torch.ones(4, 3, 32, 32))
    """,
    right="All of it moves. Now put your own network and an example of its input in its place, and "
    "check again.",
)
def moves(answer: Any) -> Mistakes:
    """Set my_network to a network that works on any device and an example of its input: first
    `Mine`, repaired, and then your own.
    """
    expect_pair(answer, "a network and an example of its input")
    network, example = answer
    expect(network, nn.Module, "the network, an nn.Module")
    expect(example, torch.Tensor, "the example, a tensor")
    device = torch.device("cuda" if torch.cuda.is_available() else "meta")
    moved = copy.deepcopy(network).to(device)
    for module in moved.modules():
        for name, value in vars(module).items():
            left = isinstance(value, torch.Tensor)
            yield left, f"`{name}` is an ordinary attribute, which stays behind: make it a buffer."
    try:
        with _OneDevice():
            moved(example.to(device))
    except RuntimeError as error:
        if "device" not in str(error):
            raise
        raise Wrong(f"`forward` makes a tensor on the CPU: {quote(error)}") from None
