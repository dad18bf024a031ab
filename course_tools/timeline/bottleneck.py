"""Find the bottleneck of a training loop: its loader, its copies, other ranks, its launches or its
arithmetic.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from course_tools.timeline.loop import LoaderFacts, LoopRecord, record_loop, record_of
from course_utils.devices import Device, as_device
from course_utils.text import format_seconds, html_card

if TYPE_CHECKING:
    import pandas as pd

CLEAR = 0.1  # the largest part has to lead the second by this share of the step
WORTH_FIRST = 0.15  # a part of this share is removed before the arithmetic is made cheaper
# The most workers to try per core. Those that wait for a drive need no core of their own, but each
# is a process with its own memory.
WORKERS_PER_CORE = 4
PARTS = ("loader", "copies", "other ranks", "launches", "arithmetic")
VERDICTS = {
    "loader": "The loader is the bottleneck",
    "copies": "Copies are the bottleneck",
    "other ranks": "The device waits for other ranks",
    "launches": "Launches are the bottleneck",
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
    #: other processes ("other ranks"), the host prepared or called operations and nothing else went
    #: on ("launches"), and the device computed ("arithmetic"); they add up to the step
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
        """Return the parts; other ranks only if there are any."""
        return [part for part in PARTS if part != "other ranks" or self.parts_s[part]]

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


def bottleneck_of(trace: Mapping[str, Any]) -> Bottleneck:
    """Return the verdict on a loop that torch.profiler recorded, on whatever machine.

    Args:
        trace: a Chrome trace, such as `json.load(open("trace.json"))`, of a program that calls
            `profiler.step()` after each step. The profiler slows the host down, so launches and
            loader take a larger share than without it.

    Raises:
        ValueError: the trace has no steps.
    """
    return judge(record_of(trace))


def judge(seen: LoopRecord) -> Bottleneck:
    """Return the verdict on what was seen of a loop.

    Times of the device are the profiler's, since it does not slow kernels down. What the host needs
    for its calls is what is left of the step without the profiler, which does slow calls down.
    """
    parts_s = _parts(seen)
    first, second = sorted(PARTS, key=parts_s.__getitem__, reverse=True)[:2]
    doubt = _doubt(seen, parts_s, first, second)
    enough = _enough_workers(seen, parts_s["loader"])
    advice = "" if doubt else _advise(first, seen, enough)
    if advice and first == "arithmetic" and parts_s[second] >= WORTH_FIRST * seen.step_s:
        share = parts_s[second] / seen.step_s
        other = _advise(second, seen, enough)
        advice = f"against the {second} ({share:.0%} of the step): {other} After that: {advice}"
    return Bottleneck(
        device=seen.device,
        limit=None if doubt else first,
        step_s=seen.step_s,
        parts_s=parts_s,
        operations=seen.operations,
        workers_to_try=_workers_to_try(seen.loader, enough) if first == "loader" else None,
        advice=advice,
        doubt=doubt,
    )


def _parts(seen: LoopRecord) -> dict[str, float]:
    """Return the seconds of a step that each part takes; launches are what is left."""
    parts_s = {
        "loader": seen.fetch_s * seen.exposed,
        "copies": seen.copies_s,
        "other ranks": seen.exchange_s,
        "arithmetic": seen.compute_s,
    }
    # the profiled steps may have been slower than the others
    total_s = max(sum(parts_s.values()), seen.step_s)
    parts_s = {part: seconds * seen.step_s / total_s for part, seconds in parts_s.items()}
    parts_s["launches"] = max(0.0, seen.step_s - sum(parts_s.values()))
    return parts_s


def _doubt(seen: LoopRecord, parts_s: dict[str, float], first: str, second: str) -> str:
    """Return why there is no verdict, or ""."""
    if first != "loader" and seen.kind != "cpu" and not seen.visible:
        return (
            f"PyTorch's profiler saw no work on {seen.device}, so the rest is not split; "
            "if that surprises you, check that the model is on that device."
        )
    if first != "loader" and seen.disturbed:
        return (
            "Other programs had the core for a part of each step, or the step itself waits: "
            "ask again on a quiet machine."
        )
    if first == "launches" and seen.queued_s > parts_s["launches"] / 2:
        return (
            "Most of what is called launches is no launch: the next work was there already, and "
            "the device did not begin it. It waited for another stream, another rank, or something "
            "that the trace does not show."
        )
    if parts_s[first] - parts_s[second] < CLEAR * seen.step_s:
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
    return max(math.ceil(one_batch_s / rest_s), workers + 1)


def _workers_to_try(loader: LoaderFacts, enough: int) -> int | None:
    """Return how many workers to try, or None if workers do not help, or no more than there are."""
    if loader.from_tensors:
        return None
    if loader.cores is None:
        return enough
    most = WORKERS_PER_CORE * loader.cores if loader.waits else loader.cores
    workers = min(enough, most)
    return workers if workers > loader.workers else None


def _advise(part: str, seen: LoopRecord, enough: int) -> str:
    if part == "loader":
        return _advise_loader(seen.loader, enough)
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
    if part == "launches":
        if seen.reads >= 1 and seen.kind != "cpu":
            return "read values such as loss.item() once per epoch and not in every step."
        larger = "a larger batch, with a learning rate to match; or "
        if seen.kind == "cpu":
            return f"{larger}torch.compile(model), which merges elementwise operations."
        graph = 'torch.compile(model, mode="reduce-overhead"), which launches whole graphs.'
        return larger + graph
    if seen.kind == "cpu":
        return "a GPU, since the processor is busy computing; or a smaller network or image."
    return "16 bits (torch.autocast): the device is busy, so only less or cheaper work helps."


def _advise_loader(loader: LoaderFacts, enough: int) -> str:
    if loader.from_tensors:
        sampler = "RandomSampler" if loader.shuffled else "SequentialSampler"
        return (
            f"take whole batches out of the tensors, DataLoader(dataset, batch_size=None, "
            f"sampler=BatchSampler({sampler}(dataset), {loader.from_tensors}, drop_last=False)). "
            "Workers would only cost time."
        )
    workers = _workers_to_try(loader, enough)
    if workers is None:
        return (
            f"prepare the data once and store them: {loader.workers} workers on {loader.cores} "
            "cores do not keep up, and more would hardly help."
        )
    advice = f"DataLoader(..., num_workers={workers})"
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
    if loader.starts_anew and loader.in_notebook:
        advice += (
            " Workers start as new processes here, so the class of the dataset has to be in a .py "
            "file that you import, not in a cell."
        )
    elif loader.starts_anew:
        advice += (
            " Workers start as new processes here, so start the training under "
            '`if __name__ == "__main__":`.'
        )
    return advice
