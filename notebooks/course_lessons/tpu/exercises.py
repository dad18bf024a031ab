"""The exercises of lesson 5: sizes for one's own lengths, and an operation XLA does not know."""

from collections.abc import Callable, Iterable
from typing import Any

import torch

from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.read_answer import expect, expect_pair, number_of
from course_lessons.exercises.torch_calls import READS, TorchCalls
from course_utils.xla import run_recorded, started_xla, xla_counters

# Two functions that torch_xla 2.9 cannot lower, as its test confirms.
FALLBACKS = ("huber_loss", "median")


@exercise(
    "The largest size is your longest length. Where do most of your lengths lie?",
    "Sort the lengths: the longest of each quarter is one of four sizes.",
    solution="""
        lengths = sorted(torch.randint(1, 65, (1000,)).tolist())  # put your own lengths here
        quarter = len(lengths) // 4
        my_buckets = lengths, [*lengths[quarter - 1 : -1 : quarter][:3], lengths[-1]]
    """,
    right="Compare with mistake 2. On a TPU, also ask: are the sizes multiples of 8?",
)
def buckets(answer: Any) -> Mistakes:
    """Set `my_buckets` to the lengths of your own data and at most four sizes to pad them to, so
    that the padding is at most half of what one size for all would need.
    """
    expect_pair(answer, "your lengths and your sizes")
    for part, what in zip(answer, ("lengths", "sizes"), strict=True):
        expect(part, Iterable, f"a list of {what}")
    lengths = [number_of(length, "a length") for length in answer[0]]
    sizes = sorted(number_of(size, "a size") for size in answer[1])
    yield not lengths or not sizes, "Give at least one length and one size."
    longest = max(lengths)
    yield min(lengths) < 1, "A length of 0 holds no data: leave it out."
    yield len(sizes) > 4, f"These are {len(sizes)} programs: each new shape is compiled."
    yield longest > sizes[-1], f"Your longest length is {longest:g}, and {sizes[-1]:g} cuts it off."
    padded = sum(next(size for size in sizes if size >= length) for length in lengths)
    rows, one_size = sum(lengths), longest * len(lengths)
    share = f"{rows / padded:.0%} of the rows hold data; with one size it would be "
    share += f"{rows / one_size:.0%}."
    yield (
        padded - rows > (one_size - rows) / 2,
        f"That is still more than half the padding: {share}",
    )
    return f"{len(sizes)} sizes are {len(sizes)} programs. {share}"


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
    """Write a `my_loss(predictions, targets)` that returns the same number as `ex.robust_loss`,
    without a fallback.
    """
    device = started_xla() or torch.device("cpu")
    host = 3 * torch.randn(2, 200, generator=torch.Generator().manual_seed(0))
    predictions, targets = (part.to(device) for part in host)
    loss, fallbacks, reads = _watch(device, lambda: answer(predictions, targets))
    expect(loss, torch.Tensor, "a tensor on the device")
    yield fallbacks, "Something still falls back to the CPU. Which of your lines is that?"
    yield reads, "You read values yourself, which is the detour that you wanted to avoid."
    given, wanted = number_of(loss, "the loss"), robust_loss(*host).item()
    yield abs(given - wanted) > 1e-4, f"The loss is {given:.4f} and should be {wanted:.4f}."


def _watch(device: torch.device, work: Callable[[], Any]) -> tuple[Any, int, int]:
    """Run `work()`; return its result, and how often it fell back and read a value.

    Where XLA runs, its counters say so; elsewhere the names of the functions called.
    """
    if device.type != "xla":
        with TorchCalls() as calls:
            result = work()
        return result, calls.count(FALLBACKS), calls.count(READS)
    run_recorded(device)  # what was recorded before is not the student's
    before = xla_counters()
    result = work()
    run_recorded(device)
    did = xla_counters() - before
    return result, did.fallbacks, did.from_device
