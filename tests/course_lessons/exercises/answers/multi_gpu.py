"""Answers to the exercises of lesson 3."""

CONTEXT = """
import math
import random

import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from course_lessons.multi_gpu import exercises as ex

shared = ex.BROKEN.replace("shuffle=True", "sampler=(sampler := DistributedSampler(data))")
exchanged = shared.replace("(network(inputs)", "(model(inputs)")
line = "    seen.append([])"
told = exchanged.replace(line, line + "\\n    sampler.set_epoch(epoch)")
"""

WRONG = {
    "repair": [
        ("my_script = ex.BROKEN", "This is the script as it was"),
        (
            "my_script = ex.BROKEN.replace('(network(inputs)', '(model(inputs)')",
            "Both ranks see the same samples",
        ),
        ("my_script = shared", "different weights"),
        ("my_script = exchanged", "Both epochs have the same samples"),
        ("my_script = told.replace('lr=0.1)', 'lr=0.1')", "a rank failed: SyntaxError"),
        ("my_script = told.replace('seen', 'samples')", "keep the lines that fill them"),
        ("my_script = 3", "the text of the script"),
    ],
    "shard": [
        (
            "def my_shard(samples, rank, ranks, epoch):\n    return range(samples // ranks)",
            "all ranks have the same samples",
        ),
        (
            "def my_shard(samples, rank, ranks, epoch):\n"
            "    order = torch.randperm(samples, generator=torch.Generator().manual_seed(epoch))\n"
            "    return order[rank::ranks]",
            "wait in vain in its last step",
        ),
        (
            "def my_shard(samples, rank, ranks, epoch):\n"
            "    return list(DistributedSampler(range(samples), ranks, rank))",
            "`set_epoch(epoch)` before you read the sampler",
        ),
        (
            "def my_shard(samples, rank, ranks, epoch):\n"
            "    generator = torch.Generator().manual_seed(rank + 9 * epoch)\n"
            "    order = torch.randperm(samples, generator=generator)\n"
            "    return order[rank * samples // ranks : (rank + 1) * samples // ranks]",
            "an order of its own",
        ),
        (
            "def my_shard(samples, rank, ranks, epoch):\n"
            "    sampler = DistributedSampler(range(samples), ranks, rank, drop_last=True)\n"
            "    sampler.set_epoch(epoch)\n"
            "    return list(sampler)",
            "samples on no rank: 1.",
        ),
    ],
}

RIGHT = {
    "repair": [
        "my_script = told",
        "my_script = told.replace('network = torch.nn.Linear(1, 1)\\nmodel', 'model')"
        ".replace('(network)', '(torch.nn.Linear(1, 1))')",
    ],
    "shard": [
        "def my_shard(samples, rank, ranks, epoch):\n"
        "    generator = torch.Generator().manual_seed(epoch)\n"
        "    order = torch.randperm(samples, generator=generator).tolist()\n"
        "    order += order[: -samples % ranks]\n"
        "    return order[rank::ranks]",
        "def my_shard(samples, rank, ranks, epoch):\n"
        "    data = TensorDataset(torch.zeros(samples))\n"
        "    sampler = DistributedSampler(data, ranks, rank, shuffle=True, seed=3)\n"
        "    sampler.set_epoch(epoch)\n"
        "    return (index for index in sampler)",
        # each rank keeps its samples, and shuffles them anew
        "def my_shard(samples, rank, ranks, epoch):\n"
        "    each = -(-samples // ranks)\n"
        "    mine = [(rank + k * ranks) % samples for k in range(each)]\n"
        "    random.Random(epoch).shuffle(mine)\n"
        "    return mine",
    ],
}
