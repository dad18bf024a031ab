"""The exercises of lesson 4: what a loop may ask of XLA, which shapes it sees, what it cannot
lower, and how to shard.

Where XLA runs in this kernel, its counters are read. Where it does not, what they would have
counted is watched.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from course_lessons.exercises import Mistakes, exercise
from course_lessons.exercises.read_answer import expect, expect_pair, number_of, quote
from course_utils.xla import READING, run_recorded, started_xla, xla_counters

BATCHES = 10
MESH = {"data": 4, "model": 2}  # devices along each axis

# What a tensor is asked when Python needs its value: on XLA, each of them fetches it from the
# device.
ASKING = {
    "item",
    "tolist",
    "numpy",
    "cpu",
    "__float__",
    "__int__",
    "__bool__",
    "__index__",
    "__complex__",
    "__array__",
}
ASKING |= {"__format__", "__repr__", "__contains__"}
# Functions that torch_xla 2.9 does not lower (tests/exercises/test_other_judges.py asks it).
FALLBACKS = {
    "huber_loss",
    "median",
    "nanmedian",
    "nansum",
    "hypot",
    "logaddexp",
    "bincount",
    "histc",
    "aminmax",
}
# another width for each check, so that no program of an earlier one fits
_features = itertools.count(200)


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
    right="In Lightning, `self.log(..., on_step=False, on_epoch=True)` does the same: it reads once per epoch.",
)
def epoch(answer: Any) -> Mistakes:
    """Write `my_epoch(step, sync, batches)`: do all steps, one program each, and return their mean
    loss as a number.
    """
    device, generator = started_xla() or torch.device("cpu"), torch.Generator().manual_seed(0)
    host = torch.rand(BATCHES, 4, next(_features), generator=generator, device="cpu")
    batches = [batch.to(device) for batch in host]
    events: list[str] = []  # "s" for a step, "|" for a sync
    reads = [0]  # until each step
    with _watched(device) as watch:

        def step(batch: torch.Tensor) -> torch.Tensor:
            events.append("s")
            reads.append(watch()[0])
            return batch.square().mean()

        def sync(*_: Any, **__: Any) -> None:
            events.append("|")
            run_recorded(device)

        loss = answer(step, sync, batches)
        in_all, _, said = watch()
    yield from _check_loop("".join(events), reads[-1], in_all)
    yield (
        isinstance(loss, torch.Tensor),
        "That is still a tensor on the device. Read it once, after the loop.",
    )
    found, losses = (
        number_of(loss, "the mean loss"),
        [batch.square().mean().item() for batch in host],
    )
    mean, total = sum(losses) / len(losses), sum(losses)
    yield (
        abs(found - losses[-1]) < 1e-5,
        "That is the loss of the last batch, which jumps: return the mean over all.",
    )
    yield (
        abs(found - total) < 1e-4,
        "That is the sum of the losses. Divide it by the number of batches.",
    )
    yield (
        abs(found - mean) >= 1e-4,
        f"The mean loss is {mean:.4f}, but your function returned {found:.4f}.",
    )
    return said


@contextmanager
def _watched(device: torch.device) -> Iterator[Callable[[], tuple[int, Sequence[str], str]]]:
    """Yield a function that says what this block did so far: values read, names of fallbacks, and
    what was counted.
    """
    if device.type == "cpu":
        with _Asked() as asked:
            yield lambda: (
                asked.count,
                asked.fallbacks,
                "XLA was not started here: ordinary tensors were watched.",
            )
        return
    from torch_xla.debug import metrics

    run_recorded(device)  # what was recorded before is not the student's
    before, known = (
        xla_counters(),
        {name: metrics.counter_value(name) for name in metrics.executed_fallback_ops()},
    )

    def look() -> tuple[int, Sequence[str], str]:
        did = xla_counters() - before
        ran = (
            name
            for name in metrics.executed_fallback_ops()
            if metrics.counter_value(name) != known.get(name)
        )
        return did.from_device, [name for name in ran if name != READING], f"XLA counted {did}."

    yield look


class _Asked(TorchFunctionMode):
    """Counts how often a tensor's value is asked for, and keeps the names of functions that XLA
    does not lower.
    """

    count = 0
    fallbacks: tuple[str, ...] = ()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name, kwargs = getattr(function, "__name__", ""), kwargs or {}
        to_host = name == "to" and "cpu" in [
            there for there in (*args[1:], *kwargs.values()) if isinstance(there, str)
        ]
        if name in ASKING or to_host:
            self.count += 1
        elif name in ("tensor", "as_tensor") and args and isinstance(args[0], list | tuple):
            self.count += sum(isinstance(one, torch.Tensor) for one in args[0])
        if name in FALLBACKS:
            self.fallbacks += (f"aten::{name}",)
        return function(*args, **kwargs)


def _check_loop(events: str, in_loop: int, in_all: int) -> Mistakes:
    steps, programs = events.count("s"), len([run for run in events.split("|") if run])
    yield steps != BATCHES, f"There are {BATCHES} batches, but your function did {steps} of them."
    yield (
        "|" not in events,
        "There was no call of the `sync` that your function is given: all steps are one program.",
    )
    yield programs == 1, "There was a sync(), but not between the steps: all are one program."
    yield (
        programs < steps,
        f"In {steps - programs} of {steps - 1} places there is no sync() between two steps.",
    )
    stops = "`.item()`, `float(...)`, `print` and `if` need a number, and XLA stops and sends one."
    read = f"Before the last step the loop had read {in_loop} value{'s' * (in_loop > 1)} from the device"
    yield in_loop, f"{read}: {stops} Add up on the device, and read once."
    late = f"The loop is fine, but after it you read {in_all} values one by one."
    yield (
        in_all >= BATCHES // 2,
        f"{late} Add them up on the device (or `torch.stack` them), and read one.",
    )


@exercise(
    "A few buckets, each as long as its longest sentence. Which lengths, so that not too many rows are empty?",
    "Round up to the next multiple of 16: that makes the four buckets 16, 32, 48 and 64.",
    solution="""
        def my_room(length):
            return 16 * -(-length // 16)
    """,
    right="Compare with mistake 2. On a TPU, also ask: are the sizes multiples of 8, the rows of a tile?",
)
def room(answer: Any) -> Mistakes:
    """Write `my_room(length)`: how many rows a sentence of 1 to 64 words is padded to, so that at
    most four programs are compiled and at least 70 % of all rows are words."""
    lengths, rooms = range(1, 65), []
    for length in lengths:
        rooms.append(
            rows := number_of(answer(length), f"the rows for a sentence of length {length}")
        )
        yield (
            rows < length,
            f"For a sentence of length {length} you return {rows:g}, so words are cut off.",
        )
        yield (
            rows % 1,
            f"For a sentence of length {length} you return {rows:g}, not a whole number of rows.",
        )
    shapes, share = set(rooms), sum(lengths) / sum(rooms)
    needed = f"{len(shapes)} programs, one for each shape"
    yield len(shapes) > 4, f"Sentences of 1 to 64 words need {needed}. Each new shape is compiled."
    yield (
        share < 0.7,
        f"Few shapes, but only {share:.0%} of the rows are words. Other buckets waste less.",
    )
    return f"{needed}; {share:.0%} of the rows are words."


def robust_loss(predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return a loss in which outliers count little, and large predictions cost a little more: one
    number.
    """
    outliers = torch.nn.functional.huber_loss(predictions, targets)
    return outliers + 0.01 * predictions.clamp(-3, 3).square().mean().sqrt()


@exercise(
    "Call `robust_loss` on tensors on the device and sync: which name does `metrics.executed_fallback_ops()` list?",
    "It is Huber's loss. With `delta=1` it is the same as `torch.nn.functional.smooth_l1_loss`, which XLA lowers.",
    solution="""
        def my_loss(predictions, targets):
            outliers = torch.nn.functional.smooth_l1_loss(predictions, targets)
            return outliers + 0.01 * predictions.clamp(-3, 3).square().mean().sqrt()
    """,
    right="In a training loop that one line would have stopped every step for a detour through the host.",
)
def fallback(answer: Any) -> Mistakes:
    """Write `my_loss(predictions, targets)`: the same number as `ex.robust_loss`, without a
    fallback.
    """
    device, generator = started_xla() or torch.device("cpu"), torch.Generator().manual_seed(0)
    host = 3 * torch.randn(2, next(_features), generator=generator)
    here = [part.to(device) for part in host]
    with _watched(device) as watch:
        loss = answer(*here)
        run_recorded(device)
        read, strange, said = watch()
    expect(loss, torch.Tensor, "a tensor on the device")
    yield strange, f"Still a fallback: {', '.join(strange)}. Which of your lines is that?"
    yield (
        read,
        "You read values yourself, and so make the detour through the host that was to be avoided.",
    )
    found, right = number_of(loss, "the loss"), robust_loss(*host).item()
    yield (
        abs(found - right) > 1e-4,
        f"No fallback, but the loss is {found:.4f} and should be {right:.4f}.",
    )
    return said


@exercise(
    "A partition spec has one entry for each dimension: the axis of the mesh that cuts it, or None for whole.",
    "16 of 64 rows: four pieces, and the axis with four devices is 'data'. 256 of 512 columns: two pieces.",
    solution='my_specs = ("data", None), (None, "model")',
    right="Every device can now multiply its 16 rows by its 256 columns without asking another one. The gradient of "
    "the weight needs an all-reduce along 'data'; that of the batch, if a layer before it needs one, along 'model'.",
)
def shard(answer: Any) -> Mistakes:
    """Eight devices form a mesh of 4 x 2 with the axes 'data' and 'model'. Give `my_specs`, two
    partition specs: one that leaves each device 16 whole rows of a batch of shape (64, 1024), and
    one that leaves it 256 whole columns of a weight of shape (1024, 512).
    """
    expect_pair(answer, "a partition spec for the batch and one for the weight")
    wanted = {"batch": ((64, 1024), (16, 1024)), "weight": ((1024, 512), (1024, 256))}
    for spec, (name, (shape, right)) in zip(answer, wanted.items(), strict=True):
        fits = isinstance(spec, tuple | list) and len(spec) == len(shape)
        yield (
            not fits,
            f"A partition spec has an entry for each of {len(shape)} dimensions, unlike `{quote(spec)}`.",
        )
        names = [name for cut in spec for name in _axes(cut)]
        unknown = [name for name in names if not (isinstance(name, str) and name in MESH)]
        yield (
            unknown,
            f"The axes of the mesh are 'data' and 'model', and {quote(unknown)} is not among them.",
        )
        yield (
            len(set(names)) < len(names),
            f"{quote(spec)} uses an axis twice: an axis can cut one dimension only.",
        )
        held = piece(spec, shape)
        said = f"With {quote(spec)} a device holds {held[0]} x {held[1]} of the {name}"
        yield held != right, f"{said}, and it should be {right[0]} x {right[1]}."


def piece(spec: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the part that one device holds of a tensor that is sharded by a partition
    spec.
    """
    counts = [math.prod(MESH[axis] for axis in _axes(cut)) for cut in spec]
    return tuple(-(-size // count) for size, count in zip(shape, counts, strict=True))


def _axes(cut: Any) -> list:
    """Return the names of the axes that cut a dimension: none, several, or one. An axis may be
    given by its number.
    """
    cuts = cut if isinstance(cut, tuple | list) else [] if cut is None else [cut]
    return [list(MESH)[one] if isinstance(one, int) and one in (0, 1) else one for one in cuts]
