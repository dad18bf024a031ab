"""The exercises of lesson 3: what each rank gets, what the ranks exchange, and what a spawned rank can know."""

import builtins
import math
import types
from typing import Any

import torch

from course_utils.data import Scale, air_passengers, make_windows
from course_utils.exercises import exercise
from course_utils.exercises.answers import (
    Wrong,
    expect_function,
    quote,
    refuse,
    same,
    tensor_of,
    whole_number,
    whole_numbers,
)

RANKS, GLOBAL_BATCH = 8, 128
WINDOW = 25  # months, as in the lesson


@exercise(
    "One step of all ranks together should see what one step of the single device saw.",
    "Divide the global batch by the number of ranks.",
    solution="my_batch = 128 // 8",
    right="Compare `samples_per_rank` of `spawned` and of `alone` above: one global batch, and so one loss.",
)
def batch(answer: Any) -> None:
    """One device trained well with batches of 128. Say the batch size of each of 8 ranks for the same training."""
    size = whole_number(answer, "how many samples")
    step = f"{RANKS} ranks of {size} samples make a step of {RANKS * size}, and not of {GLOBAL_BATCH}."
    mistakes = {
        f"With {size} on each of {RANKS} ranks, a step uses {RANKS * size} samples: another training.": size == 128,
        "You multiplied. The ranks share one global batch out, so each of them takes a part of it.": size == 1024,
        f"{RANKS} is the number of ranks. {step}": size == RANKS,
        step: size * RANKS != GLOBAL_BATCH,
    }
    refuse(mistakes)


@exercise(
    "A name that a rank does not import or make itself is known in this kernel only. That goes for `torch` too.",
    "Import `Scale`, `air_passengers` and `make_windows` inside the function, and return what `make_windows` returns.",
    solution="""
        def my_windows():
            from course_utils.data import Scale, air_passengers, make_windows

            series, _ = air_passengers()
            return make_windows(Scale.fit(series).apply(series), 25)
    """,
    right="That is why the cell of `spy_lesson` begins with its imports: `%%writefile` saves that cell as a file, and "
    "each rank knows only what the file holds.",
)
def spawnable(answer: Any) -> None:
    """Write `my_windows()`, which returns the scaled windows of 25 months and their targets in a fresh Python."""
    expect_function(answer)
    if not isinstance(answer, types.FunctionType):
        raise Wrong(f"Write a function with `def`: a {type(answer).__name__} is imported in other ways.")
    brought = answer.__closure__ or answer.__defaults__ or answer.__kwdefaults__
    mistakes = {
        "A rank looks up your function's name, and a lambda has none. Use `def`.": answer.__name__ == "<lambda>",
        "Your function brings values along from this kernel. A rank starts with none: make them inside.": brought,
    }
    refuse(mistakes)
    _expect_windows(_run_fresh(answer))


def _run_fresh(function: types.FunctionType) -> object:
    """Run a function with none of the names of the kernel, as in a process that has just started."""
    names: dict[str, Any] = {"__builtins__": builtins, "__name__": "__mp_main__"}
    names[function.__name__] = alone = types.FunctionType(function.__code__, names, function.__name__)
    try:
        return alone()
    except NameError as error:
        if error.name is None:  # a variable that is used before it has a value
            raise
        raise Wrong(f"A spawned rank does not know `{error.name}` of this kernel. Import or make it inside.") from None


def _expect_windows(answer: Any) -> None:
    pair = getattr(answer, "tensors", answer)  # of a TensorDataset
    if not isinstance(pair, tuple | list) or [isinstance(one, torch.Tensor) for one in pair] != [True, True]:
        raise Wrong(f"Return the inputs and the targets, as `make_windows` does. Your function returned {quote(pair)}")
    series, _ = air_passengers()
    inputs, targets = make_windows(Scale.fit(series).apply(series), WINDOW)
    shapes, right = [one.shape for one in pair], [inputs.shape, targets.shape]
    alike, fresh = same(pair[0], inputs) and same(pair[1], targets), "It runs in a fresh Python, but"
    mistakes = {
        f"{fresh} the inputs have shape {tuple(shapes[0])}, not {tuple(right[0])}.": shapes != right,
        f"{fresh} these are passengers. Scale the series first, as the lesson does.": pair[0].max() > 2,
        f"{fresh} these are not the windows of the lesson: is the scale another one?": not alike,
    }
    refuse(mistakes)


@exercise(
    "Two half batches together should give the gradient of the whole batch, whose loss is a mean over its samples.",
    "Add the gradients of all ranks, weight by weight, and divide by how many ranks there are.",
    solution="""
        def my_all_reduce(gradients):
            return sum(gradients) / len(gradients)
    """,
    right="In the lines of `Spy` above, take the mean of what the two ranks call 'my gradient' in one step: it is what "
    "both have after the all-reduce.",
)
def average(answer: Any) -> None:
    """Write `my_all_reduce(gradients)`: from the tensors of all ranks, the gradient that DDP leaves in each rank."""
    expect_function(answer, "gradients")
    for ranks in (2, 4):
        own, whole = _gradients(ranks)
        found = _one_gradient(answer([gradient.clone() for gradient in own]), ranks)
        _compare_gradients(found, own, whole)


def _gradients(ranks: int) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Return the gradient of each rank's samples, and of all samples on one device, for a linear model."""
    generator = torch.Generator().manual_seed(ranks)
    inputs = torch.randn(4 * ranks, 3, generator=generator, device="cpu")
    targets = torch.randn(4 * ranks, generator=generator, device="cpu")

    def gradient(rows: slice) -> torch.Tensor:  # of the mean squared error, where all three weights are 0
        return -2 * inputs[rows].T @ targets[rows] / len(targets[rows])

    return [gradient(slice(rank, None, ranks)) for rank in range(ranks)], gradient(slice(None))


def _one_gradient(answer: Any, ranks: int) -> torch.Tensor:
    """Return the answer as one tensor; a list with the same tensor for each rank will do."""
    if isinstance(answer, list | tuple) and len(answer) == ranks and isinstance(answer[0], torch.Tensor):
        differ = not all(torch.equal(one, answer[0]) for one in answer)
        refuse({"The ranks end with different gradients, and so, after one step, with different weights.": differ})
        answer = answer[0]
    found = tensor_of(answer, f"Return a tensor with a gradient for each weight, but this is {quote(answer)}")
    shape = (
        f"Each weight has a gradient of its own, but yours has the shape {tuple(found.shape)}: average over the ranks."
    )
    refuse({shape: found.shape != (3,)})
    return found


def _compare_gradients(found: torch.Tensor, own: list[torch.Tensor], whole: torch.Tensor) -> None:
    ranks, total = len(own), torch.stack(own).sum(dim=0)
    mistakes = {
        f"That is the sum: a step {ranks} times as long as on one device. After the all-reduce DDP divides.": total,
        f"You divided by 2, and here are {ranks} ranks. Divide by as many as there are.": total / 2,
    }
    for rank, gradient in enumerate(own):
        mistakes[f"That is the gradient of rank {rank} alone. What the others learned in this step is lost."] = gradient
    if not same(found, whole):
        refuse({message: same(found, value) for message, value in mistakes.items()})
        raise Wrong("One device with the whole batch has another gradient. DDP leaves the mean over the ranks.")


@exercise(
    "A `DistributedSampler` does it all, when you tell it the number of ranks, this rank, and the epoch.",
    "Make a `DistributedSampler(range(samples), num_replicas=ranks, rank=rank)`, call `set_epoch(epoch)`, then "
    "list it.",
    solution="""
        def my_shard(samples, rank, ranks, epoch):
            sampler = DistributedSampler(range(samples), num_replicas=ranks, rank=rank)
            sampler.set_epoch(epoch)
            return list(sampler)
    """,
    right="Under a Trainer, Lightning makes this sampler and tells it the epoch: that is why `Spy` printed its name.",
)
def shard(answer: Any) -> None:
    """Write `my_shard(samples, rank, ranks, epoch)`: the numbers of one rank's samples, in a new order each epoch."""
    expect_function(answer, "samples", "rank", "ranks", "epoch")
    what = "the numbers of the samples of this rank, such as a list"
    for samples, ranks in ((64, 2), (129, 2), (109, 8)):
        epochs = [[whole_numbers(answer(samples, rank, ranks, n), what) for rank in range(ranks)] for n in range(3)]
        for shards in epochs:
            _check_shards(shards, samples)
        if epochs[0] == epochs[1] or epochs[1] == epochs[2]:
            raise Wrong(
                "Two epochs in a row have the same samples in the same order: call `set_epoch(epoch)`, before it is "
                "read."
            )


def _check_shards(shards: list[list[int]], samples: int) -> None:
    ranks, seen = len(shards), {sample for shard in shards for sample in shard}
    what, share, lost = f"{samples} samples on {ranks} ranks", math.ceil(samples / ranks), samples - len(seen)
    lengths = sorted({len(one) for one in shards})
    strangers = [*seen - set(range(samples)), None]
    alike = shards[0] and all(set(one) == set(shards[0]) for one in shards)
    mistakes = {
        f"{what}: they are numbered from 0 to {samples - 1}, but one of yours is {strangers[0]}.": len(strangers) > 1,
        f"{what}: all ranks have the same samples and gradient: nothing is gained. A shard depends on the rank.": alike,
        f"{what}: one rank has {lengths[0]}, another {lengths[-1]}: that one would wait in its last step "
        "for ever.": len(lengths) > 1,
        f"{what}: {lost} samples are on no rank. Use a few twice rather than omit some.": lengths[0] < share,
        f"{what}: a share is {share}, but each rank has {lengths[0]}. The work is not divided.": lengths[0] > share,
        f"{what}: some are on two ranks, {lost} on none. The ranks do not deal from the same pack: use one seed.": lost,
    }
    refuse(mistakes)
