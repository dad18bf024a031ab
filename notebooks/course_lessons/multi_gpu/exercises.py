"""The exercises of lesson 3: a script to repair, and the samples of one rank."""

import math
from typing import Any

import torch

from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.read_answer import (
    Wrong,
    expect,
    quote,
    whole_numbers,
)
from course_lessons.exercises.two_ranks import run_two_ranks

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
    "Print in each rank which samples it sees in both epochs, and its weights at the end. "
    "Which of these should differ between the ranks?",
    "The loader needs a `DistributedSampler`, which has to know the epoch, "
    "and the loss needs `model`.",
    solution="""
        my_script = (
            ex.BROKEN.replace("shuffle=True", "sampler=(sampler := DistributedSampler(data))")
            .replace("    seen.append([])", "    seen.append([])\\n    sampler.set_epoch(epoch)")
            .replace("(network(inputs)", "(model(inputs)")
        )
    """,
    right="None of the three mistakes raises an error: the script trains, the loss falls, and the "
    "second rank is wasted. Look at the samples and the weights of each rank whenever you write "
    "such a script.",
)
def repair(answer: Any) -> Mistakes:
    """Set `my_script` to the text of `ex.BROKEN` with its three mistakes repaired. Two ranks will
    run it.
    """
    script = getattr(answer, "read_text", lambda: answer)()
    expect(script, str, "the text of the script")
    yield (
        "init_process_group" not in script,
        "This is not the text of the script: it starts no process group.",
    )
    yield (
        script == BROKEN,
        "This is the script as it was. Two ranks run it, and nobody complains: what do they do?",
    )
    try:
        one, other = run_two_ranks(script)
    except RuntimeError as error:
        raise Wrong(f"With your repairs a rank failed: {quote(error)}") from None
    kept = (
        "At its end your script should have `model`, and both epochs in `seen`: "
        "keep the lines that fill them."
    )
    yield (
        not all(
            rank["weights"] and len(rank["seen"]) == 2 and all(rank["seen"])
            for rank in (one, other)
        ),
        kept,
    )
    first, second = one["seen"][0], other["seen"][0]
    both = sorted(round(32 * x) for x in first + second)
    yield (
        sorted(first) == sorted(second),
        "Both ranks see the same samples in an epoch: the work is not shared.",
    )
    yield (
        both != list(range(32)),
        "Together the ranks do not see each of the 32 samples once in an epoch.",
    )
    never = (
        "they never averaged a gradient. "
        "DDP does so only for what its own `forward` has calculated."
    )
    yield one["weights"] != other["weights"], f"The ranks end with different weights: {never}"
    torch.manual_seed(42)
    start = [weight.tolist() for weight in torch.nn.Linear(1, 1).parameters()]
    yield (
        one["weights"] == start,
        "The weights end as they began: nothing was learned. Keep all lines of a step.",
    )
    yield (
        first == one["seen"][1],
        "Both epochs have the same samples in the same order: tell the sampler the epoch.",
    )


@exercise(
    "A `DistributedSampler` does it all if you pass the number of ranks, this rank, and the epoch.",
    "`DistributedSampler(range(samples), num_replicas=ranks, rank=rank)`, "
    "then `set_epoch(epoch)`, then `list`.",
    solution="""
        def my_shard(samples, rank, ranks, epoch):
            sampler = DistributedSampler(range(samples), num_replicas=ranks, rank=rank)
            sampler.set_epoch(epoch)
            return list(sampler)
    """,
    right="Under a Trainer, Lightning creates this sampler and sets its epoch. "
    "In plain PyTorch you do it.",
)
def shard(answer: Any) -> Mistakes:
    """Write `my_shard(samples, rank, ranks, epoch)`: the indices of one rank's samples, in a new
    order each epoch.
    """
    what = "the numbers of the samples of this rank, such as a list"
    for samples, ranks in ((64, 2), (129, 2), (109, 8)):
        epochs = [
            [whole_numbers(answer(samples, rank, ranks, n), what) for rank in range(ranks)]
            for n in range(3)
        ]
        for shards in epochs:
            yield from _check_shards(shards, samples)
        first, second, third = epochs
        yield (
            first in (second, third) or second == third,
            "Two of three epochs have the same samples in the same order: call "
            "`set_epoch(epoch)` before you read the sampler.",
        )


def _check_shards(shards: list[list[int]], samples: int) -> Mistakes:
    ranks = len(shards)
    seen = set().union(*shards)
    share = math.ceil(samples / ranks)
    lost = samples - len(seen)
    what = f"{samples} samples on {ranks} ranks:"
    for stranger in seen - set(range(samples)):
        yield (
            True,
            f"{what} they are numbered from 0 to {samples - 1}, but one of yours is {stranger}.",
        )
    alike = shards[0] and all(set(one) == set(shards[0]) for one in shards)
    yield (
        alike,
        f"{what} all ranks have the same samples and gradient: nothing is gained. "
        "A shard depends on the rank.",
    )
    fewest, *_, most = sorted(map(len, shards))
    yield (
        fewest != most,
        f"{what} one rank has {fewest}, another {most}, which would wait in vain in its last step.",
    )
    yield (
        fewest < share,
        f"{what} samples on no rank: {lost}. Use a few twice rather than omit some.",
    )
    yield (
        fewest > share,
        f"{what} a share is {share}, but each rank has {fewest}. The work is not divided.",
    )
    yield (
        lost,
        f"{what} some are on two ranks, {lost} on none. "
        "Each rank has an order of its own: use one seed.",
    )
