"""The exercises of lesson 2: a loop that keeps a GPU waiting, and a network that does not move."""

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.graphs import Graphs
from course_lessons.exercises.read_answer import Wrong, expect, number_of, quote, same
from course_tools.rehearsal import Report, rehearse
from course_utils.transfers import to_device

BATCHES = 4
BLOCKING = "copy to the GPU"  # what a rehearsal calls a copy that the host waits for
# What PyTorch says when tensors are on several devices, or of several devices' types.
WRONG_DEVICE = ("device", "should be the same")

# what is in the name of a cell's file: in Jupyter, on Colab, and where it has none
CELLS = ("ipykernel", "ipython-input", "<")


def _names(function: Any) -> tuple[str, ...]:
    """Return the global names and attributes that the code of a function reads."""
    code = getattr(function, "__code__", None)
    return code.co_names if code else ()


def _is_about_devices(error: Exception) -> bool:
    return any(words in str(error) for words in WRONG_DEVICE)


def _small_training(device: str) -> tuple[nn.Module, list, torch.optim.Optimizer]:
    with torch.random.fork_rng([]):
        torch.manual_seed(1)
        network = nn.Sequential(nn.Flatten(), nn.Linear(48, 3))
        pixels = torch.randint(0, 256, (BATCHES, 8, 3, 4, 4), dtype=torch.uint8)
        labels = torch.randint(0, 3, (BATCHES, 8))
    network.register_forward_pre_hook(lambda _, inputs: inputs[0].float() / 255)  # takes bytes
    optimizer = torch.optim.SGD(network.to(device).parameters(), lr=0.1)
    return network, list(zip(pixels, labels, strict=True)), optimizer


def _train_plainly() -> tuple[float, nn.Module]:
    network, batches, optimizer = _small_training("cpu")
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
    with rehearse("cuda", hide_real=True) as rehearsal:
        network, batches, optimizer = _small_training("cuda")
        pinned = [(pixels.pin_memory(), labels.pin_memory()) for pixels, labels in batches]
        alive = Graphs().watch_calls(network)
        before = rehearsal.report
        try:
            returned = answer(network, pinned, optimizer, torch.device("cuda"))
        except RuntimeError as error:
            if not _is_about_devices(error):
                raise
            raise Wrong("Pixels and labels of every batch have to be moved to `device`.") from error
        after = rehearsal.report
        mean = number_of(returned, "the mean loss")
        weights = [weight.detach().cpu() for weight in network.parameters()]
    loss, trained = _train_plainly()
    yield (
        not all(same(*pair) for pair in zip(weights, trained.parameters(), strict=True)),
        "The network did not learn what it should: keep zero_grad, backward and step.",
    )
    sizes = [sum(part.nbytes for part in batch) for batch in batches]
    yield (
        _copied_bytes(after) - _copied_bytes(before) > sum(sizes),
        "The pixels become float32 before they are copied: four times the bytes. Copy the bytes; "
        "the network converts them on the device.",
    )
    yield (
        _waits(after, BLOCKING) > _waits(before, BLOCKING),
        "The copies block: the host waits for each. The loader's memory is pinned, so pass "
        "non_blocking=True.",
    )
    yield (
        "empty_cache" in _names(answer),
        "empty_cache gives the memory back to the driver, and the next step asks for it again, "
        "which waits. PyTorch reuses it by itself.",
    )
    yield (
        "synchronize" in _names(answer),
        "synchronize makes the host wait for all that it asked for. You need it to read a clock, "
        "not to train.",
    )
    waits = _waits(after) - _waits(before)
    yield (
        waits > 2,
        f"Values leave the device {waits} times, and each time the host waits. Add "
        "`loss.detach()` and read the sum once.",
    )
    yield (
        max(alive, default=0) > 1,
        "The sum of the losses keeps the graph of every batch alive, and the memory of the card "
        "fills. Add `loss.detach()`.",
    )
    yield abs(mean - loss) > 1e-4, "That is not the mean loss of the epoch."


def _copied_bytes(report: Report) -> int:
    """Return how many bytes went from the host to the GPU."""
    return sum(line.size_bytes for line in report.copies if line.what.startswith("to the GPU"))


def _waits(report: Report, what: str = "") -> int:
    """Return how often the host waited for the GPU, for anything or for one kind of thing."""
    return sum(line.count for line in report.waits if line.what.startswith(what))


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
    right="A training step of it ran on a simulated GPU: forward pass, loss and backward pass. "
    "Loader, metrics and checkpoints were not looked at: `python -m course_tools.rehearsal "
    "train.py` runs a whole script. Now put your own network and an example in its place.",
)
def moves(answer: Any) -> Mistakes:
    """Set my_network to a network that works on any device and an example of its input: first
    `Mine`, repaired, and then your own, if you like with a third item: your loss, as a function
    of the network's output.
    """
    expect(answer, tuple | list, "a network and an example of its input")
    if len(answer) not in (2, 3):
        raise Wrong(f"This should be a network and an example, but it has {len(answer)} parts.")
    network, example, loss = (*answer, _sum_of)[:3]
    expect(network, nn.Module, "the network, an nn.Module")
    expect(example, Tensor | tuple | list | dict, "the example, a tensor or several")
    is_mine = type(network).__name__ == "Mine"
    moved = copy.deepcopy(network, _results_kept_in(network))
    try:
        with rehearse("cuda", hide_real=True):
            moved.to("cuda")
            given = to_device(example, "cuda")
            total = loss(_call(moved, given))
            if total.requires_grad:
                total.backward()
            again = [_sum_of(_call(moved, given)) for _ in range(2 if is_mine else 0)]
            repeated = is_mine and bool(again[0] == again[1])
    except (RuntimeError, TypeError) as error:
        if not _is_about_devices(error):
            raise
        yield from _left_behind(moved)
        raise Wrong(f"A tensor is on the CPU: {quote(error)} {_which_one(error)}".strip()) from None
    if is_mine and hasattr(network, "mean"):
        yield (
            isinstance(network.mean, nn.Parameter),
            "`mean` moves now, but an optimizer would train it: make it a buffer.",
        )
        yield repeated, "The noise has gone. Keep it, and make it where `hidden` is."


def _which_one(error: Exception) -> str:
    """Say which tensor stayed on the CPU and where it was made, as far as a rehearsal knows it."""
    known = "\n".join(getattr(error, "__notes__", ()))
    tensor = re.search(r"which one: (.+ on cpu), made (.+)", known)
    if not tensor:
        return ""
    place = re.fullmatch(r"at (.+):(\d+): (.+)", tensor[2])
    if not place:
        return f"It is {tensor[1]}, made {tensor[2]}."
    file, line, code = place.groups()
    in_a_cell = any(mark in file for mark in CELLS)
    where = "your cell" if in_a_cell else Path(file).name
    return f"It is {tensor[1]}, made in line {line} of {where}: {code}"


def _results_kept_in(network: nn.Module) -> dict[int, Tensor]:
    """Return results that a network has kept from an earlier call, without their graphs.

    With its graph a tensor cannot be copied. The keys are those that `copy.deepcopy` looks up.
    """
    values = [value for module in network.modules() for value in vars(module).values()]
    kept = [value for value in values if isinstance(value, Tensor) and value.grad_fn is not None]
    return {id(value): value.detach() for value in kept}


def _call(network: nn.Module, example: Any) -> Any:
    if isinstance(example, dict):
        return network(**example)
    return network(*example) if isinstance(example, list | tuple) else network(example)


def _sum_of(output: Any) -> Tensor:
    """Return a sum of everything in an output that can have gradients."""
    sums = [tensor.sum() for tensor in _tensors(output)]
    if not sums:
        raise Wrong(
            f"The network returns no floating-point numbers, but {quote(output)}. Give a function "
            "that computes your loss from it as the third part."
        )
    return torch.stack(sums).sum()


def _tensors(part: Any) -> Iterator[Tensor]:
    if isinstance(part, Tensor):
        if part.is_floating_point():
            yield part.float()
        return
    parts = part.values() if isinstance(part, dict) else part
    for each in parts if isinstance(part, dict | list | tuple) else ():
        yield from _tensors(each)


def _left_behind(network: nn.Module) -> Mistakes:
    """Say which parts of a network `.to` does not move."""
    for module in network.modules():
        for name, value in vars(module).items():
            if name.startswith("_"):
                continue
            inside = list(value.values()) if isinstance(value, dict) else value
            inside = inside if isinstance(inside, list | tuple) else ()
            yield (
                any(isinstance(each, nn.Module) for each in inside),
                f"`{name}` holds layers that PyTorch does not see, because it is a plain "
                f"{type(value).__name__}: use nn.ModuleList or nn.ModuleDict.",
            )
            yield (
                isinstance(value, Tensor),
                f"`{name}` is an ordinary attribute, which stays behind: make it a buffer.",
            )
