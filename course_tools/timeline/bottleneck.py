"""Find the bottleneck of a training loop: its loader, its copies, other ranks, its own Python, its
launches, or the memory or arithmetic of the device.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from course_tools.timeline.advice import WORTH_FIRST, advise, enough_workers, workers_to_try
from course_tools.timeline.loop_record import LoopRecord, record_of
from course_tools.timeline.run_loop import record_loop
from course_tools.timeline.trace import Trace
from course_utils.devices import Device, as_device
from course_utils.tables import html_card
from course_utils.units import format_seconds

if TYPE_CHECKING:
    import pandas as pd

CLEAR = 0.1  # the largest part has to lead the second by this share of the step
PARTS = ("loader", "copies", "other ranks", "own Python", "launches", "memory", "arithmetic")
ON_DEVICE = ("memory", "arithmetic")  # the device works in both; none of them is a wait
VERDICTS = {
    "loader": "The loader is the bottleneck",
    "copies": "Copies are the bottleneck",
    "other ranks": "The device waits for other ranks",
    "own Python": "The loop's own Python is the bottleneck",
    "launches": "Launches are the bottleneck",
    "memory": "The device's memory is the bottleneck",
    "arithmetic": "Arithmetic is the bottleneck",
    None: "The bottleneck is not clear",
}


@dataclass(frozen=True)
class Bottleneck:
    """The part that holds a training loop back, with the numbers behind the verdict."""

    device: str  #: where the loop ran
    limit: str | None  #: a name of `PARTS`; None if it is not clear
    step_s: float  #: seconds of a step, with the wait for its batch
    #: seconds of a step by part, which add up to it:
    #: "loader", the device had nothing to do because the loop waited for a batch;
    #: "copies", only a copy between host and device went on;
    #: "other ranks", only an exchange with other processes went on;
    #: "own Python", nothing went on but Python that calls no operation;
    #: "launches", nothing went on but the host preparing and calling operations;
    #: "memory", the device ran kernels that mostly wait for its memory;
    #: "arithmetic", it ran products, convolutions and attention; on a CPU all operations
    parts_s: dict[str, float]
    operations: int  #: kernels, or on a CPU operations, in a step
    #: how many workers to try if the loader is the bottleneck; None where workers would not help,
    #: and where a trace shows workers, but not how many
    workers_to_try: int | None
    advice: str  #: what to try first, or "" if the bottleneck is not clear
    doubt: str  #: why there is no verdict, or ""

    def share(self, part: str) -> float:
        """Return the share of the step that a part takes, by its name in `PARTS`."""
        return self.parts_s[part] / self.step_s

    def to_frame(self) -> "pd.DataFrame":
        """Return the parts as a pandas table, in milliseconds and as shares of the step."""
        import pandas as pd

        rows = [(part, 1e3 * self.parts_s[part], self.share(part)) for part in self._shown()]
        return pd.DataFrame(rows, columns=["part", "ms per step", "share"]).set_index("part")

    def _shown(self) -> list[str]:
        """Return the parts; other ranks and memory only if anything was seen of them."""
        sometimes = ("other ranks", "memory")
        return [part for part in PARTS if part not in sometimes or self.parts_s[part]]

    def __repr__(self) -> str:
        shares = ", ".join(f"{part} {self.share(part):.0%}" for part in self._shown())
        step = f"{format_seconds(self.step_s)} per step on {self.device}"
        said = f"{VERDICTS[self.limit]}: of {step}, {shares} ({self.operations} operations)."
        advice = f"Try first: {self.advice}" if self.advice else ""
        return " ".join(text for text in (said, self.doubt, advice) if text)

    def _repr_html_(self) -> str:
        rows = []
        for part in self._shown():
            rows.append((part, format_seconds(self.parts_s[part]), f"{self.share(part):.0%}"))
        return html_card("Where a step's time goes", ("part", "time", "share"), rows, repr(self))


def find_bottleneck(
    step: Callable[[Any], object],
    loader: Iterable[Any],
    *,
    device: Device | str | None = None,
    steps: int = 20,
    max_s: float = 30.0,
) -> Bottleneck:
    """Run a few steps of a training loop, and say what its bottleneck is and what to try first.

    The steps are real: they train the model further. They run once without the profiler, which
    gives the times, and once with it, which shows when the device worked.

    Args:
        step: takes one training step on a batch, with its copy to the device.
        loader: yields batches, such as a DataLoader. It is started again when it ends.
        device: where `step` works; a `Device`, its name, or None for the best one.
        steps: how many to time; some more run as a warm-up and under the profiler.
        max_s: time no further step after this many seconds.

    Returns:
        The verdict. Its `limit` is None where two parts take about equally long, or where the
        profiler cannot see the device.

    Raises:
        TypeError: `step` cannot be called with one batch.
        ValueError: `steps` is not positive, the loader yields nothing, or it ended early and cannot
            be started again.
        RuntimeError: workers that start as new processes did not find the class of the dataset.

    Example:
        >>> import torch
        >>> batches = [torch.ones(64, 64) for _ in range(4)]
        >>> found = find_bottleneck(lambda batch: batch @ batch, batches, device="cpu")
        >>> found.device, round(sum(found.parts_s.values()) / found.step_s, 3)
        ('cpu', 1.0)
    """
    if steps < 1:
        raise ValueError(f"steps is {steps}, but at least one step has to be timed.")
    return judge(record_loop(step, loader, as_device(device), steps=steps, max_s=max_s))


def bottleneck_of(trace: Trace) -> Bottleneck:
    """Return the verdict on a loop that torch.profiler recorded, on whatever machine.

    Args:
        trace: the path of a Chrome trace, such as "trace.json" or "trace.json.gz", or what
            `json.load` made of one, of a program that calls `profiler.step()` after each step. The
            profiler slows the host down, so launches and loader take a larger share than without
            it.

    Raises:
        OSError, ValueError: there is no such file, it is not a Chrome trace, or it has no steps.
    """
    return judge(record_of(trace))


def judge(seen: LoopRecord) -> Bottleneck:
    """Return the verdict on what was seen of a loop.

    Times of the device are the profiler's, since it does not slow kernels down. What the host needs
    for its calls is what is left of the step without the profiler, which does slow calls down.
    """
    parts_s = _parts(seen)
    groups = [(part,) for part in PARTS if part not in ON_DEVICE] + [ON_DEVICE]
    seconds = {group: sum(parts_s[part] for part in group) for group in groups}
    longest, next_longest = sorted(groups, key=seconds.__getitem__, reverse=True)[:2]
    first, second = (max(group, key=parts_s.__getitem__) for group in (longest, next_longest))
    doubt = _doubt(seen, parts_s, first, second, seconds[longest] - seconds[next_longest])
    enough = enough_workers(seen, parts_s["loader"])
    advice = "" if doubt else advise(first, seen, enough)
    if advice and longest == ON_DEVICE and parts_s[second] >= WORTH_FIRST * seen.step_s:
        share = parts_s[second] / seen.step_s
        other = advise(second, seen, enough)
        advice = f"against the {second} ({share:.0%} of the step): {other} After that: {advice}"
    return Bottleneck(
        device=seen.device,
        limit=None if doubt else first,
        step_s=seen.step_s,
        parts_s=parts_s,
        operations=seen.operations,
        workers_to_try=workers_to_try(seen, enough) if first == "loader" else None,
        advice=advice,
        doubt=doubt,
    )


def _parts(seen: LoopRecord) -> dict[str, float]:
    """Return the seconds of a step that each part takes; launches are what is left."""
    parts_s = {
        "loader": seen.fetch_s * seen.exposed,
        "copies": seen.copies_s,
        "other ranks": seen.exchange_s,
        "own Python": seen.python_s,
        "memory": seen.memory_s,
        "arithmetic": seen.arithmetic_s,
    }
    # the profiled steps may have been slower than the others
    total_s = max(sum(parts_s.values()), seen.step_s)
    parts_s = {part: seconds * seen.step_s / total_s for part, seconds in parts_s.items()}
    parts_s["launches"] = max(0.0, seen.step_s - sum(parts_s.values()))
    return parts_s


def _doubt(
    seen: LoopRecord, parts_s: dict[str, float], first: str, second: str, lead_s: float
) -> str:
    """Return why there is no verdict, or ""."""
    if first != "loader" and seen.kind != "cpu" and not seen.visible:
        return (
            f"PyTorch's profiler saw no work on {seen.device}, so the rest is not split; "
            "if that surprises you, check that the model is on that device."
        )
    # what other programs took of the step is in these two: without it they still have to lead
    leads = lead_s >= CLEAR * seen.step_s
    own_lead_s, own_step_s = lead_s - seen.lost_s, seen.step_s - seen.lost_s
    disturbed = own_lead_s < 0 or (leads and own_lead_s < CLEAR * own_step_s)
    if first in ("launches", "own Python") and disturbed:
        return "Other programs had the core for a part of each step: ask again on a quiet machine."
    if first == "launches" and seen.queued_s > parts_s["launches"] / 2:
        return (
            "Most of what is called launches is no launch: the next work was there already, and "
            "the device did not begin it. It waited for another stream, another rank, or something "
            "that the trace does not show."
        )
    if not leads:
        return f"The {first} and the {second} take about equally long."
    return ""
