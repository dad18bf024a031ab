"""Find the bottleneck of a training loop: its loader, its copies, other ranks, its own Python, its
launches, or the memory or arithmetic of the device.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from course_tools.timeline.loop_record import LoopRecord, record_of
from course_tools.timeline.run_loop import record_loop
from course_tools.timeline.trace import Trace
from course_utils.devices import Device, as_device
from course_utils.tables import html_card
from course_utils.units import format_seconds

if TYPE_CHECKING:
    import pandas as pd

CLEAR = 0.1  # the largest part has to lead the second by this share of the step
WORTH_FIRST = 0.15  # a part of this share is removed before the device's work is made cheaper
# The most workers to try per core. Those that wait for a drive need no core of their own, but each
# is a process with its own memory.
WORKERS_PER_CORE = 4
# A sample that takes less costs a worker more to send than the loop to make: it is sent in a batch
# through shared memory, which takes about as long as some dozens of such samples.
CHEAP_S = 50e-6
MANY_READS = 0.2  # of a CPU's operations; more of them are a loop over single values
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
    #: seconds of a step in which the device had nothing to do because the loop waited for a batch
    #: ("loader"), only a copy between host and device went on ("copies"), only an exchange with
    #: other processes ("other ranks"), nothing but Python that calls no operation ("own Python"),
    #: the host prepared or called operations and nothing else went on ("launches"), and the device
    #: worked, in kernels that mostly wait for its memory ("memory") or in products, convolutions
    #: and attention ("arithmetic"; on a CPU in all operations); they add up to the step
    parts_s: dict[str, float]
    operations: int  #: kernels, or on a CPU operations, in a step
    #: how many workers to try if the loader is the bottleneck; None where workers would not help
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
    enough = _enough_workers(seen, parts_s["loader"])
    advice = "" if doubt else _advise(first, seen, enough)
    if advice and longest == ON_DEVICE and parts_s[second] >= WORTH_FIRST * seen.step_s:
        share = parts_s[second] / seen.step_s
        other = _advise(second, seen, enough)
        advice = f"against the {second} ({share:.0%} of the step): {other} After that: {advice}"
    return Bottleneck(
        device=seen.device,
        limit=None if doubt else first,
        step_s=seen.step_s,
        parts_s=parts_s,
        operations=seen.operations,
        workers_to_try=_workers_to_try(seen, enough) if first == "loader" else None,
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
    # what other programs took of the step is in these two
    if first in ("launches", "own Python") and seen.lost_s > lead_s:
        return "Other programs had the core for a part of each step: ask again on a quiet machine."
    if first == "launches" and seen.queued_s > parts_s["launches"] / 2:
        return (
            "Most of what is called launches is no launch: the next work was there already, and "
            "the device did not begin it. It waited for another stream, another rank, or something "
            "that the trace does not show."
        )
    if lead_s < CLEAR * seen.step_s:
        return f"The {first} and the {second} take about equally long."
    return ""


def _enough_workers(seen: LoopRecord, loader_s: float) -> int:
    """Return how many workers prepare batches about as fast as the rest of the step uses them: the
    time of a batch divided by that of the rest. The shorter the rest, the rougher the number.
    """
    workers = seen.loader.workers
    # of w workers that cannot keep up, each takes w steps for its batch
    one_batch_s = seen.step_s * workers if workers else seen.fetch_s
    rest_s = max(seen.step_s - loader_s, 1e-3 * seen.step_s)
    return math.ceil(one_batch_s / rest_s)


def _restarts(seen: LoopRecord) -> bool:
    """Say whether most of the wait for batches is the start of workers for a new epoch."""
    return seen.loader.restart_s > seen.fetch_s / 2


def _wants_whole_batches(seen: LoopRecord) -> bool:
    cheap = seen.sample_s < CHEAP_S and not seen.loader.waits
    return bool(seen.loader.batch) and (seen.loader.in_tensors or cheap)


def _workers_to_try(seen: LoopRecord, enough: int) -> int | None:
    """Return how many workers to try, or None if workers do not help, or no more than there are."""
    loader = seen.loader
    if _wants_whole_batches(seen) or _restarts(seen):
        return None
    if loader.cores is None:
        return enough
    most = WORKERS_PER_CORE * loader.cores if loader.waits else loader.cores
    workers = min(enough, most)
    return workers if workers > loader.workers else None


def _advise(part: str, seen: LoopRecord, enough: int) -> str:
    on_cpu = seen.kind == "cpu"
    if part == "loader":
        return _advise_loader(seen, enough)
    if part == "copies":
        return (
            "DataLoader(..., pin_memory=True) and batch.to(device, non_blocking=True); copy the "
            "bytes as they are, such as uint8, and convert them on the device."
        )
    if part == "other ranks":
        return (
            "compare the ranks, because all wait for the slowest; then more work per exchange: a "
            "larger batch per rank, or accumulated gradients under no_sync()."
        )
    if part == "own Python":
        return (
            "what the step does beside PyTorch's operations, such as metrics, logging, a progress "
            "bar or a checkpoint: do it every hundredth step, or for a whole batch in tensors. "
            "`python -m cProfile -s tottime` names the lines."
        )
    if part == "launches":
        return _advise_launches(seen)
    if part == "memory":
        return (
            "torch.compile(model), which fuses the operations between the products and so reads "
            "and writes less; and 16 bits (torch.autocast), which halve the bytes."
        )
    if on_cpu:
        return "a GPU, since the processor is busy computing; or a smaller network or image."
    return "16 bits (torch.autocast): the device is busy, so only less or cheaper work helps."


def _advise_launches(seen: LoopRecord) -> str:
    on_cpu = seen.kind == "cpu"
    drained = seen.reads >= 1 and seen.waits_s >= WORTH_FIRST * seen.step_s
    if drained and not on_cpu:
        share = seen.waits_s / seen.step_s
        return (
            f"read values such as loss.item() once per epoch and not in every step: for {share:.0%}"
            " of it the host waits for one, and has launched nothing when the device is ready."
        )
    if on_cpu and seen.reads > MANY_READS * seen.operations:
        return (
            f"{seen.reads:.0f} of the step's calls read a single value (.item(), float(x), "
            "if x > 0): compute with the whole tensor, and read once."
        )
    larger = "a larger batch, with a learning rate to match; or "
    if on_cpu:
        return f"{larger}torch.compile(model), which merges elementwise operations."
    return larger + 'torch.compile(model, mode="reduce-overhead"), which launches whole graphs.'


def _advise_loader(seen: LoopRecord, enough: int) -> str:
    loader = seen.loader
    if _wants_whole_batches(seen):
        return _advise_whole_batches(seen)
    if _restarts(seen):
        share = loader.restart_s / seen.step_s
        return (
            "DataLoader(..., persistent_workers=True): the workers start anew for every epoch, "
            f"which takes {share:.0%} of the time, and more of them would take longer."
        )
    workers = _workers_to_try(seen, enough)
    if workers is None:
        return (
            f"prepare the data once and store them: {loader.workers} workers on {loader.cores} "
            "cores do not keep up, and more would hardly help."
        )
    again = ", persistent_workers=True" if loader.spawned and not loader.persistent else ""
    advice = f"DataLoader(..., num_workers={workers}{again})"
    if not loader.is_dataloader:
        advice = f"load the batches in a DataLoader of torch, with num_workers={workers}"
    if loader.waits:
        advice += "; loading waits and does not compute, so workers need no core of their own"
        if loader.cores is not None and workers > loader.cores:
            advice += f" (PyTorch's warning about {loader.cores} cores is for those that compute)"
        advice += "."
    elif workers < enough:
        advice += (
            f", one for each core. It would take about {enough} cores to keep up, so also prepare "
            "the data once and store them."
        )
    else:
        advice += ", which should be about enough."
    if loader.spawned and loader.in_notebook:
        advice += (
            " Workers start as new processes here, so the class of the dataset has to be in a .py "
            "file that you import, not in a cell."
        )
    elif loader.spawned:
        advice += (
            " Workers start as new processes here, so start the training under "
            '`if __name__ == "__main__":`.'
        )
    return advice


def _advise_whole_batches(seen: LoopRecord) -> str:
    loader = seen.loader
    batches = f"BatchSampler({loader.sampler}, {loader.batch}, drop_last={loader.drop_last})"
    line = f"DataLoader(dataset, batch_size=None, sampler={batches})"
    if loader.in_tensors:
        return f"take whole batches out of the tensors, {line}. Workers would only cost time."
    return (
        f"make whole batches, {line}. The dataset then gets a list of numbers and returns a batch, "
        f"such as self.x[numbers]: a sample takes only {format_seconds(seen.sample_s)}, so most of "
        "the time is the call for each, and workers would only cost time."
    )
