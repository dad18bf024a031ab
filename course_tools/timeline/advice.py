"""What to try first against the part of a training loop that holds it back."""

import math

from course_tools.timeline.loop_record import LoaderFacts, LoopRecord
from course_utils.units import format_seconds

WORTH_FIRST = 0.15  # a part of this share is removed before the device's work is made cheaper
# The most workers to try per core. Those that wait for a drive need no core of their own, but each
# is a process with its own memory.
WORKERS_PER_CORE = 4
# A sample that takes less costs a worker more to send than the loop to make: it is sent in a batch
# through shared memory, which takes about as long as some dozens of such samples.
CHEAP_S = 50e-6
# What a worker needs on a core to send a batch, and the loop to take it in: measured for batches of
# 20 kB to 25 MB, with a worker of torch 2.9 on Linux, in November 2026.
SEND_S, SENT_BYTES_PER_S = 1.2e-3, 1.1e9
# A whole batch that takes longer is hardly cheaper per sample if it is larger: the calls that it
# needs whatever its size take a tenth of this.
LONG_S = 0.5e-3
# The numbers of the samples in a tensor, as these samplers draw them.
NUMBERS = {
    "RandomSampler(dataset)": "torch.randperm(len(x))",
    "SequentialSampler(dataset)": "torch.arange(len(x))",
}
SEVERAL_FETCHES = 1.5  # per step; below that a step has one, and one ahead in the last
MANY_READS = 0.2  # of a CPU's operations; more of them are a loop over single values


def enough_workers(seen: LoopRecord, loader_s: float) -> int:
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


def _has_uncounted_workers(loader: LoaderFacts) -> bool:
    """Say whether a trace shows workers: it does not show how many, nor what a batch takes them."""
    return loader.cores is None and loader.workers > 0


def _is_made_faster_than_sent(seen: LoopRecord) -> bool:
    """Say whether a worker would need longer to send a batch than the loop to make it."""
    if _has_uncounted_workers(seen.loader):
        return False
    sent_s = SEND_S + seen.loader.batch_bytes / SENT_BYTES_PER_S
    made_s = seen.fetch_s if seen.loader.waits else 0.0  # what waits takes no time on a core
    return max(seen.batch_s, made_s) < sent_s


def _gains_nothing_by_workers(seen: LoopRecord) -> bool:
    loader = seen.loader
    fast = _wants_whole_batches(seen) or _is_made_faster_than_sent(seen)
    return fast or loader.in_tensors or loader.receives or _restarts(seen)


def workers_to_try(seen: LoopRecord, enough: int) -> int | None:
    """Return how many workers to try, or None if workers do not help, or no more than there are,
    or if a trace does not say how many there are.
    """
    loader = seen.loader
    if _gains_nothing_by_workers(seen):
        return None
    if _has_uncounted_workers(loader):
        return None
    if loader.cores is None:
        return enough
    most = WORKERS_PER_CORE * loader.cores if loader.waits else loader.cores
    workers = min(enough, most)
    return workers if workers > loader.workers else None


def advise(part: str, seen: LoopRecord, enough: int) -> str:
    """Return what to try first against a part; `enough` is what `enough_workers` returns."""
    return _advise(part, seen, enough) + _on_what_a_trace_shows(part, seen)


def _on_what_a_trace_shows(part: str, seen: LoopRecord) -> str:
    """Return what is to be known of the batches in a trace, as a sentence, or ""."""
    if seen.loader.cores is None and not seen.loader.is_dataloader:
        return (
            " (The trace shows no DataLoader of torch, so that whatever makes the batches counts "
            "as the step's own.)"
        )
    if part == "loader" and seen.fetches >= SEVERAL_FETCHES:
        return (
            f" A step fetches {seen.fetches:.1f} batches here, so a validation or the accumulation "
            "of gradients is in it: with two loaders, see which of them is slow."
        )
    return ""


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
    if _gains_nothing_by_workers(seen):
        return _advise_without_workers(seen)
    if _has_uncounted_workers(loader):
        return (
            f"about {enough} times as many workers (num_workers) if loading waits, as for a drive. "
            "If it computes (a trace does not say), one for each core."
        )
    workers = workers_to_try(seen, enough)
    if workers is None:
        return (
            f"prepare the data once and store them: {loader.workers} workers on {loader.cores} "
            "cores do not keep up, and more would hardly help."
        )
    again = ", persistent_workers=True" if loader.spawned and not loader.persistent else ""
    advice = f"DataLoader(..., num_workers={workers}{again})"
    if not loader.is_dataloader:
        advice = f"load the batches in a DataLoader of torch, with num_workers={workers}"
    advice += _on_their_number(loader, workers, enough)
    if loader.iterable:
        advice += (
            " Each worker goes through the whole of an IterableDataset unless that takes only its "
            f"share (torch.utils.data.get_worker_info), and then each sample comes {workers} times."
        )
    return advice + _on_their_start(loader)


def _advise_without_workers(seen: LoopRecord) -> str:
    """Return what to do where workers, or more of them, would not help."""
    loader = seen.loader
    if _wants_whole_batches(seen):
        return _advise_whole_batches(seen)
    # batches that are made on the device need no copy to it
    on_device = "" if seen.kind == "cpu" else "keep the data on the device (they have to fit), and "
    if loader.in_tensors:
        numbers = NUMBERS.get(loader.sampler, "torch.tensor(list(sampler))")
        return (
            f"{on_device}pick the rows by a tensor of numbers, without a DataLoader: "
            "x, y = dataset[list(range(len(dataset)))], and then for numbers in "
            f"{numbers}.split(batch_size): step((x[numbers], y[numbers])). A "
            "sampler gives a list of numbers, which can take longer than the rows. Workers would "
            "only cost time."
        )
    if _restarts(seen):
        share = loader.restart_s / seen.step_s
        return (
            "DataLoader(..., persistent_workers=True): the workers start anew for every epoch, "
            f"which takes {share:.0%} of the time, and more of them would take longer."
        )
    if loader.receives:
        return (
            "num_workers=0, and ask again: the loop is busy taking in what its workers send, and "
            "more of them would not make that faster."
        )
    fewer = "num_workers=0, and " if loader.workers else ""
    larger = "take a larger batch, with a learning rate to match, and ask again"
    if not loader.batch and seen.batch_s > LONG_S:
        larger = "make the samples cheaper, for example by preparing and storing them once"
    return (
        f"{fewer}{on_device}{larger}: a batch takes {format_seconds(seen.batch_s)} to make, which "
        "is less than a worker needs to send it, so that workers would only cost time."
    )


def _on_their_number(loader: LoaderFacts, workers: int, enough: int) -> str:
    """Return what is to be said of the number of workers, as the end of a sentence."""
    if loader.waits:
        said = "; loading waits and does not compute, so workers need no core of their own"
        if loader.cores is not None and workers > loader.cores:
            said += f" (PyTorch's warning about {loader.cores} cores is for those that compute)"
        return f"{said}."
    if workers < enough:
        return (
            f", one for each core. It would take about {enough} cores to keep up, so also prepare "
            "the data once and store them."
        )
    if loader.cores is None:
        return (
            ", which should be about enough if loading waits, as for a drive. If it computes "
            "(a trace does not say), take one for each core; and none, but whole batches, if the "
            "samples are rows of a tensor."
        )
    return ", which should be about enough."


def _on_their_start(loader: LoaderFacts) -> str:
    """Return what a program has to heed where workers start as new processes, or ""."""
    if not loader.spawned:
        return ""
    if loader.in_notebook:
        return (
            " Workers start as new processes here, so the class of the dataset has to be in a .py "
            "file that you import, not in a cell."
        )
    return (
        " Workers start as new processes here, so start the training under "
        '`if __name__ == "__main__":`.'
    )


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
