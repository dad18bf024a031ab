"""The exercises of lesson 3: what each rank gets, what the ranks exchange, and what a spawned rank can know."""

import builtins
import math
import types

import torch

from course_utils.data import Scale, air_passengers, make_windows
from course_utils.exercises.exercise import Wrong, exercise, expect_function, quote
from course_utils.exercises.whole_numbers import whole_number, whole_numbers

RANKS, GLOBAL_BATCH = 8, 128
WINDOW = 25  # months, as in the lesson
CLOSE = 1e-4


@exercise(
    hints=(
        "One step of all ranks together should see what one step of the single device saw.",
        "Divide the global batch by the number of ranks.",
    ),
    solution="my_batch = 128 // 8",
)
def batch(answer):
    """One device trained well with batches of 128. Say the batch size of each of 8 ranks for the same training."""
    size = whole_number(answer, "how many samples")
    if size == GLOBAL_BATCH:
        raise Wrong(
            f"With {size} on each of {RANKS} ranks, a step uses {RANKS * size} samples. That is the batch of each rank "
            "kept and the global batch grown: another training, with fewer steps, that may need another learning rate."
        )
    if size == GLOBAL_BATCH * RANKS:
        raise Wrong("You multiplied. The ranks share one global batch out, so each of them takes a part of it.")
    if size == RANKS:
        raise Wrong(f"{RANKS} is the number of ranks. {RANKS} ranks of {RANKS} samples make a step of {RANKS**2}.")
    if size * RANKS != GLOBAL_BATCH:
        raise Wrong(f"{RANKS} ranks of {size} samples make a step of {RANKS * size}, and not of {GLOBAL_BATCH}.")
    return (
        "The global batch has stayed, so the training has too. Look at `samples_per_rank` of `spawned` and of `alone` "
        "above: they were split in the same way, and that is why their losses agree."
    )


@exercise(
    hints=(
        "A name that a rank does not import or make itself is known in this kernel only. That goes for `torch` too.",
        "Put `from course_utils.data import Scale, air_passengers, make_windows` inside the function, make the series "
        "there, and return what `make_windows` returns.",
    ),
    solution="""
        def my_windows():
            from course_utils.data import Scale, air_passengers, make_windows

            series, _ = air_passengers()
            return make_windows(Scale.fit(series).apply(series), 25)
    """,
)
def spawnable(answer):
    """Write `my_windows()`, which returns the scaled windows of 25 months and their targets in a fresh Python."""
    expect_function(answer)
    if not isinstance(answer, types.FunctionType):
        raise Wrong(f"Write a function with `def`: a {type(answer).__name__} is imported in other ways.")
    if answer.__name__ == "<lambda>":
        raise Wrong("A rank looks your function up by its name, and a lambda has none. Write it with `def`.")
    if answer.__closure__ or answer.__defaults__ or answer.__kwdefaults__:
        raise Wrong("Your function brings values along from this kernel. A rank starts with none: make them inside.")
    _expect_windows(_run_fresh(answer))
    return (
        "A fresh Python can run it. That is why the cell of `spy_lesson` begins with its imports: `run_lesson` saves "
        "that cell as a file, and each rank knows what the file holds and nothing else."
    )


def _run_fresh(function: types.FunctionType) -> object:
    """Run a function with none of the names of the kernel, as in a process that has just started."""
    names = {"__builtins__": builtins, "__name__": "__mp_main__"}
    alone = types.FunctionType(function.__code__, names, function.__name__)
    names[function.__name__] = alone
    try:
        return alone()
    except NameError as error:
        if error.name is None:  # a variable that is used before it has a value
            raise
        raise Wrong(
            f"A spawned rank does not know `{error.name}`: it lives in this kernel, and the rank is a fresh Python. "
            "Import it or make it inside of the function."
        ) from None


def _expect_windows(answer: object) -> None:
    pair = getattr(answer, "tensors", answer)  # of a TensorDataset
    if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(isinstance(x, torch.Tensor) for x in pair):
        raise Wrong(f"Return the inputs and the targets, as `make_windows` does. Your function returned {quote(pair)}")
    series, _ = air_passengers()
    wanted = make_windows(Scale.fit(series).apply(series), WINDOW)
    if pair[0].shape != wanted[0].shape or pair[1].shape != wanted[1].shape:
        raise Wrong(
            f"It runs in a fresh Python, but the inputs have shape {tuple(pair[0].shape)} and not "
            f"{tuple(wanted[0].shape)}: windows of {WINDOW} months of the 121 to train on."
        )
    if pair[0].max() > 2:
        raise Wrong("It runs in a fresh Python, but these are passengers. Scale the series first, as the lesson does.")
    if not all(torch.allclose(one, other, atol=CLOSE) for one, other in zip(pair, wanted, strict=True)):
        raise Wrong("It runs in a fresh Python, but these are not the windows of the lesson: is the scale another one?")


@exercise(
    hints=(
        "Two half batches together should give the gradient of the whole batch, whose loss is a mean over its samples.",
        "Add the gradients of all ranks, weight by weight, and divide by how many ranks there are.",
    ),
    solution="""
        def my_all_reduce(gradients):
            return sum(gradients) / len(gradients)
    """,
)
def average(answer):
    """Write `my_all_reduce(gradients)`: from the tensors of all ranks, the gradient that DDP leaves in each rank."""
    expect_function(answer, "gradients")
    for ranks in (2, 4):
        own, whole = _gradients(ranks)
        found = _one_gradient(answer([gradient.clone() for gradient in own]), ranks)
        _compare_gradients(found, own, whole)
    return (
        "It is the gradient of the whole batch, for two ranks and for four. In the lines of `Spy` above, take the mean "
        "of what the two ranks call 'my gradient' in one step: it is what both have after the all-reduce."
    )


def _gradients(ranks: int) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Return the gradient of each rank's samples, and of all samples on one device, for a linear model."""
    generator = torch.Generator().manual_seed(ranks)
    inputs = torch.randn(4 * ranks, 3, generator=generator, device="cpu")
    targets = torch.randn(4 * ranks, generator=generator, device="cpu")

    def gradient(rows: slice) -> torch.Tensor:  # of the mean squared error, where all three weights are 0
        return -2 * inputs[rows].T @ targets[rows] / len(targets[rows])

    return [gradient(slice(rank, None, ranks)) for rank in range(ranks)], gradient(slice(None))


def _one_gradient(answer: object, ranks: int) -> torch.Tensor:
    """Return the answer as one tensor; a list with the same tensor for each rank will do."""
    if isinstance(answer, list | tuple) and len(answer) == ranks and isinstance(answer[0], torch.Tensor):
        if not all(torch.equal(one, answer[0]) for one in answer):
            raise Wrong("The ranks end with different gradients, so after one step they have different weights.")
        answer = answer[0]
    try:
        found = torch.as_tensor(answer).detach().cpu().float()
    except (TypeError, ValueError, RuntimeError):
        raise Wrong(f"Return a tensor with a gradient for each weight, but this is {quote(answer)}") from None
    if found.shape != (3,):
        raise Wrong(
            f"Each weight has a gradient of its own: of shape (3,) here, but yours has {tuple(found.shape)}. The mean "
            "goes over the ranks and not over the weights."
        )
    return found


def _compare_gradients(found: torch.Tensor, own: list[torch.Tensor], whole: torch.Tensor) -> None:
    ranks, total = len(own), sum(own)
    if torch.allclose(found, whole, atol=CLOSE):
        return
    if torch.allclose(found, total, atol=CLOSE):
        raise Wrong(
            f"That is the sum. With {ranks} ranks each step would be {ranks} times as long as on one device. An "
            "all-reduce adds; DDP then divides, so that the result is a mean."
        )
    if torch.allclose(found, total / 2, atol=CLOSE):
        raise Wrong(f"You divided by 2, and here are {ranks} ranks. Divide by as many as there are.")
    for rank, gradient in enumerate(own):
        if torch.allclose(found, gradient, atol=CLOSE):
            raise Wrong(f"That is the gradient of rank {rank} alone. What the others learned in this step is lost.")
    raise Wrong("One device with the whole batch has another gradient. DDP leaves the mean over the ranks.")


@exercise(
    hints=(
        "A `DistributedSampler` does it all, when you tell it how many ranks there are, which one this is, and which "
        "epoch. Without a running Trainer nobody else tells it.",
        "Make `DistributedSampler(range(samples), num_replicas=ranks, rank=rank)`, call its `set_epoch(epoch)`, and "
        "only then make a list of it.",
    ),
    solution="""
        def my_shard(samples, rank, ranks, epoch):
            sampler = DistributedSampler(range(samples), num_replicas=ranks, rank=rank)
            sampler.set_epoch(epoch)
            return list(sampler)
    """,
)
def shard(answer):
    """Write `my_shard(samples, rank, ranks, epoch)`: the numbers of one rank's samples, in a new order each epoch."""
    expect_function(answer, "samples", "rank", "ranks", "epoch")
    for samples, ranks in ((64, 2), (129, 2), (109, 8)):
        epochs = [[_samples(answer(samples, rank, ranks, epoch)) for rank in range(ranks)] for epoch in range(3)]
        for shards in epochs:
            _check_shards(shards, samples)
        if epochs[0] == epochs[1] or epochs[1] == epochs[2]:
            raise Wrong(
                "Two epochs in a row have the same samples in the same order, so each batch meets again as it was. A "
                "sampler draws its order from a seed and the epoch, and it has to be told the epoch: "
                "`set_epoch(epoch)`, before it is read."
            )
    return (
        "Every sample has its rank, all ranks take the same number of steps, and each epoch has an order of its own. "
        "Under a Trainer, Lightning makes this sampler and tells it the epoch: that is why `Spy` printed its name."
    )


def _samples(answer: object) -> list[int]:
    return whole_numbers(answer, "the numbers of the samples of this rank, such as a list")


def _check_shards(shards: list[list[int]], samples: int) -> None:
    ranks, seen = len(shards), {sample for shard in shards for sample in shard}
    what = f"{samples} samples on {ranks} ranks"
    share = math.ceil(samples / ranks)
    for stranger in seen - set(range(samples)):
        raise Wrong(f"{what}: they are numbered from 0 to {samples - 1}, but one of yours is {stranger}.")
    if all(set(one) == set(shards[0]) for one in shards) and shards[0]:
        raise Wrong(
            f"{what}: all ranks have the same samples. They compute the same gradient, and its mean over the ranks is "
            "that gradient: all the work is done several times, and nothing is gained. A shard depends on the rank."
        )
    lengths = sorted({len(one) for one in shards})
    if len(lengths) > 1:
        raise Wrong(
            f"{what}: some rank has {lengths[0]} and another {lengths[-1]}. With batches of one, the longer one would "
            "wait in its last step for ever. Give all the same number: use a few samples twice."
        )
    if lengths[0] < share:
        raise Wrong(
            f"{what}: {samples - len(seen)} samples are on no rank, since each has {lengths[0]}. Use a few twice "
            "rather than leave some out."
        )
    if lengths[0] > share:
        raise Wrong(f"{what}: a share is {share}, but each rank has {lengths[0]}. The work is not divided.")
    if len(seen) < samples:
        raise Wrong(
            f"{what}: some samples are on two ranks, and {samples - len(seen)} on none. The ranks do not deal from "
            "the same pack: shuffle it with a seed that is the same on all of them, and let only the deal differ."
        )
