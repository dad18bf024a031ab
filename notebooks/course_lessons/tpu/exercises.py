"""The exercises of lesson 4: reading values, padding, an operation XLA does not know, sharding.

Where XLA was started in this kernel, its counters judge. Elsewhere ordinary tensors are watched.
"""

import itertools
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.read_answer import expect, expect_pair, number_of, quote
from course_utils.xla import READING, run_recorded, started_xla, xla_counters

BATCHES = 10
MESH = {"data": 4, "model": 2}  # devices along each axis
# What Python calls to get the value of a tensor: on XLA each of them fetches it from the device.
READS = ("item", "tolist", "numpy", "cpu", "__float__", "__int__", "__bool__", "__format__")
# Two functions that torch_xla 2.9 cannot lower, as test_other_judges.py confirms.
FALLBACKS = ("huber_loss", "median")
# Each check takes another width, so that no program of an earlier check fits.
_widths = itertools.count(200)


class _WatchXLA:
    """What XLA has read and could not lower since this was made."""

    def __init__(self) -> None:
        run_recorded(torch.device("xla"))  # what was recorded before is not the student's
        self._before = xla_counters()
        self._known = self._count_fallbacks()

    def __enter__(self) -> "_WatchXLA":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def reads(self) -> int:
        return (xla_counters() - self._before).from_device

    @property
    def fallbacks(self) -> list[str]:
        counts = self._count_fallbacks()
        return [name for name in counts if counts[name] != self._known.get(name)]

    @property
    def summary(self) -> str:
        return f"XLA counted {xla_counters() - self._before}."

    def _count_fallbacks(self) -> dict[str, int]:
        from torch_xla.debug import metrics

        names = [name for name in metrics.executed_fallback_ops() if name != READING]
        return {name: metrics.counter_value(name) for name in names}


class _WatchTensors(TorchFunctionMode):
    """What XLA would have read and could not have lowered, seen on ordinary tensors."""

    summary = "XLA was not started here: ordinary tensors were watched."

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.fallbacks: list[str] = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if name in READS:
            self.reads += 1
        if name in FALLBACKS:
            self.fallbacks.append(f"aten::{name}")
        return function(*args, **(kwargs or {}))


def _watch(device: torch.device) -> Any:
    """Return what watches the tensors of a device. Make it once the student's tensors are there."""
    return _WatchXLA() if device.type == "xla" else _WatchTensors()


@exercise(
    "Between two steps there should be a sync(), and nothing that asks for a value.",
    "`total = total + step(batch)` and `sync()` in the loop; call `.item()` once after it.",
    solution="""
        def my_epoch(step, sync, batches):
            total = 0
            for batch in batches:
                total = total + step(batch)
                sync()
            return total.item() / len(batches)
    """,
    right="In Lightning, `self.log(..., on_step=False, on_epoch=True)` reads once per epoch too.",
)
def epoch(answer: Any) -> Mistakes:
    """Write `my_epoch(step, sync, batches)`: do all steps, one program each, and return their mean
    loss as a number.
    """
    device = started_xla() or torch.device("cpu")
    host = torch.rand(BATCHES, 4, next(_widths), generator=torch.Generator().manual_seed(0))
    losses = [batch.square().mean().item() for batch in host]
    batches = [batch.to(device) for batch in host]
    watch = _watch(device)
    events, reads = [], [0]

    def step(batch: torch.Tensor) -> torch.Tensor:
        events.append("step")
        reads.append(watch.reads)
        return batch.square().mean()

    def sync(*_: Any, **__: Any) -> None:
        events.append("sync")
        run_recorded(device)

    with watch:
        returned = answer(step, sync, batches)
        total_reads = watch.reads
    yield from _check_events(events)
    yield (
        reads[-1],
        f"Before the last step the loop had read {reads[-1]} values from the device. `.item()`, "
        "`float`, `print` and `if` need a number: add up on the device, and read once.",
    )
    yield (
        total_reads >= BATCHES // 2,
        f"The loop is fine, but after it you read {total_reads} values one by one. Read one sum.",
    )
    yield (
        isinstance(returned, torch.Tensor),
        "That is still a tensor on the device. Read it once, after the loop.",
    )
    given, mean = number_of(returned, "the mean loss"), sum(losses) / BATCHES
    yield abs(given - losses[-1]) < 1e-5, "That is the loss of the last batch alone."
    yield abs(given - sum(losses)) < 1e-4, "That is the sum: divide it by the number of batches."
    yield abs(given - mean) > 1e-4, f"The mean loss is {mean:.4f}, and you returned {given:.4f}."
    return watch.summary


def _check_events(events: list[str]) -> Mistakes:
    """Check that every batch had its step, and that each step was a program of its own."""
    steps = events.count("step")
    yield steps != BATCHES, f"There are {BATCHES} batches, but your function did {steps} of them."
    yield "sync" not in events, "Your function never called `sync`: all steps are one program."
    together = sum(pair == ("step", "step") for pair in itertools.pairwise(events))
    yield together, f"In {together} places there is no sync() between two steps."


@exercise(
    "A few buckets, each as long as its longest sentence. "
    "Which lengths, so that not too many rows are empty?",
    "Round up to the next multiple of 16: that makes the four buckets 16, 32, 48 and 64.",
    solution="""
        def my_room(length):
            return 16 * -(-length // 16)
    """,
    right="Compare with mistake 2. On a TPU, also ask: are the sizes multiples of 8?",
)
def room(answer: Any) -> Mistakes:
    """Write `my_room(length)`: how many rows a sentence of 1 to 64 words is padded to, so that at
    most four programs are compiled and at least 70 % of all rows are words.
    """
    lengths = range(1, 65)
    rooms = [number_of(answer(n), f"the rows for a sentence of length {n}") for n in lengths]
    for length, rows in zip(lengths, rooms, strict=True):
        found = f"For a sentence of length {length} you return {rows:g}"
        yield rows < length, f"{found}, so words are cut off."
        yield rows % 1, f"{found}, not a whole number of rows."
    programs, share = len(set(rooms)), sum(lengths) / sum(rooms)
    yield programs > 4, f"Your lengths need {programs} programs: each new shape is compiled."
    yield share < 0.7, f"Few shapes, but only {share:.0%} of the rows are words."
    return f"{programs} programs, one for each shape; {share:.0%} of the rows are words."


def robust_loss(predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return a loss in which outliers count little, and large predictions cost a little more."""
    outliers = torch.nn.functional.huber_loss(predictions, targets)
    return outliers + 0.01 * predictions.clamp(-3, 3).square().mean().sqrt()


@exercise(
    "Call `robust_loss` on tensors on the device: "
    "which name does `metrics.executed_fallback_ops()` list?",
    "It is Huber's loss. With `delta=1` it is the same as `torch.nn.functional.smooth_l1_loss`, "
    "which XLA lowers.",
    solution="""
        def my_loss(predictions, targets):
            outliers = torch.nn.functional.smooth_l1_loss(predictions, targets)
            return outliers + 0.01 * predictions.clamp(-3, 3).square().mean().sqrt()
    """,
    right="In a training loop that one line would have stopped every step.",
)
def fallback(answer: Any) -> Mistakes:
    """Write `my_loss(predictions, targets)`: the number of `ex.robust_loss`, without a fallback."""
    device = started_xla() or torch.device("cpu")
    host = 3 * torch.randn(2, next(_widths), generator=torch.Generator().manual_seed(0))
    predictions, targets = (part.to(device) for part in host)
    with _watch(device) as watch:
        loss = answer(predictions, targets)
        run_recorded(device)
        fallbacks, reads, summary = watch.fallbacks, watch.reads, watch.summary
    expect(loss, torch.Tensor, "a tensor on the device")
    yield fallbacks, f"Still a fallback: {', '.join(fallbacks)}. Which of your lines is that?"
    yield reads, "You read values yourself, which is the detour that you wanted to avoid."
    given, wanted = number_of(loss, "the loss"), robust_loss(*host).item()
    yield abs(given - wanted) > 1e-4, f"The loss is {given:.4f} and should be {wanted:.4f}."
    return summary


@exercise(
    "A partition spec has one entry for each dimension: the axis that cuts it, or None for whole.",
    "16 of 64 rows are four pieces, and 'data' has four devices. 256 of 512 columns are two.",
    solution='my_specs = ("data", None), (None, "model")',
    right="Every device can now multiply its 16 rows by its 256 columns without asking another.",
)
def shard(answer: Any) -> Mistakes:
    """Eight devices form a mesh of 4 x 2 with the axes 'data' and 'model'. Give `my_specs`, two
    partition specs: one that leaves each device 16 whole rows of a batch of shape (64, 1024), and
    one that leaves it 256 whole columns of a weight of shape (1024, 512).
    """
    expect_pair(answer, "a partition spec for the batch and one for the weight")
    yield from _check_spec(answer[0], "batch", (64, 1024), wanted=(16, 1024))
    yield from _check_spec(answer[1], "weight", (1024, 512), wanted=(1024, 256))


def _check_spec(
    spec: Any, name: str, shape: tuple[int, int], *, wanted: tuple[int, int]
) -> Mistakes:
    fits = isinstance(spec, tuple | list) and len(spec) == 2
    yield not fits, f"A partition spec has an entry for each dimension, unlike `{quote(spec)}`."
    axes = [axis for axis in spec if axis is not None]
    unknown = [axis for axis in axes if not isinstance(axis, str) or axis not in MESH]
    yield unknown, f"The axes are 'data' and 'model', and {quote(unknown)} is not among them."
    yield len(set(axes)) < len(axes), f"{quote(spec)} uses an axis twice: it can cut only once."
    held = piece(spec, shape)
    found = f"With {quote(spec)} a device holds {held[0]} x {held[1]} of the {name}"
    yield held != wanted, f"{found}, and it should be {wanted[0]} x {wanted[1]}."


def piece(spec: Any, shape: tuple[int, int]) -> tuple[int, ...]:
    """Return the shape of the part that one device holds of a tensor that a spec splits."""
    return tuple(
        size // MESH[axis] if axis else size for size, axis in zip(shape, spec, strict=True)
    )
