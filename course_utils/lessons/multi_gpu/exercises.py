"""The exercises of lesson 3: what each rank gets, what the ranks exchange, and a script to repair."""

import math
from typing import Any

import torch

from course_utils.exercises import exercise
from course_utils.exercises.answers import (
    Wrong,
    expect,
    expect_function,
    quote,
    refuse,
    same,
    tensor_of,
    whole_number,
    whole_numbers,
)
from course_utils.lessons.multi_gpu.two_ranks import run_two_ranks

RANKS, GLOBAL_BATCH = 8, 128


@exercise(
    "One step of all ranks together should see what one step of the single device saw.",
    "Divide the global batch by the number of ranks.",
    solution="my_batch = 128 // 8",
    right="That is why the script above divides 64 by the number of ranks: one global batch, and so the same weights.",
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


BROKEN = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(42)
x = torch.arange(32.0).unsqueeze(1) / 32
data = TensorDataset(x, 3 * x)
network = torch.nn.Linear(1, 1)
model = DistributedDataParallel(network)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(data, batch_size=4, shuffle=True)
seen = []  # the samples of each epoch
for epoch in range(2):
    seen.append([])
    for inputs, targets in loader:
        loss = torch.nn.functional.mse_loss(network(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen[-1] += inputs.flatten().tolist()
dist.destroy_process_group()
"""


@exercise(
    "Print in each rank which samples it sees in both epochs, and its weights at the end: what should differ?",
    "The loader needs a `DistributedSampler`, which wants to know the epoch, and the loss needs `model`.",
    solution="""
        my_script = (
            ex.BROKEN.replace("shuffle=True", "sampler=(sampler := DistributedSampler(data))")
            .replace("    seen.append([])", "    seen.append([])\\n    sampler.set_epoch(epoch)")
            .replace("(network(inputs)", "(model(inputs)")
        )
    """,
    right="None of the three raises anything: the script trains, the loss falls, and the second rank is wasted. Look "
    "at the samples and the weights of each rank whenever you write such a script.",
)
def repair(answer: Any) -> None:
    """Give the text of `ex.BROKEN` as `my_script`, with its three mistakes repaired. Two ranks will run it."""
    script = getattr(answer, "read_text", lambda: answer)()
    expect(script, str, "the text of the script")
    refuse(
        {
            "This is not the script: it starts no process group.": "init_process_group" not in script,
            "This is the script as it was. Two ranks run it, and nobody complains: what do they do?": script == BROKEN,
        }
    )
    try:
        one, other = run_two_ranks(script)
    except RuntimeError as error:
        raise Wrong(f"With your repairs a rank ends in: {quote(error)}") from None
    samples = sorted(round(32 * x) for x in one["seen"][0] + other["seen"][0])
    refuse(
        {
            "Both ranks see the same samples in the first epoch: the work is not shared.": sorted(one["seen"][0])
            == sorted(other["seen"][0]),
            "Together the ranks do not see each of the 32 samples once in an epoch.": samples != list(range(32)),
            "The ranks end with different weights: they never averaged a gradient. DDP does so only for what its own "
            "`forward` has calculated.": one["weights"] != other["weights"],
            "Both epochs have the same samples in the same order. The sampler has to be told which epoch it is.": one[
                "seen"
            ][0]
            == one["seen"][1],
        }
    )


@exercise(
    "Two half batches together should give the gradient of the whole batch, whose loss is a mean over its samples.",
    "Add the gradients of all ranks, weight by weight, and divide by how many ranks there are.",
    solution="""
        def my_all_reduce(gradients):
            return sum(gradients) / len(gradients)
    """,
    right="Look at the picture of the all-reduce again: each of the lower bars is the mean of the two above it.",
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
    right="Under a Trainer, Lightning makes this sampler and tells it the epoch; in plain PyTorch it is your part.",
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
