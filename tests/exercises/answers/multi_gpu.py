"""Answers to the exercises of lesson 3."""

CONTEXT = """
import math
import random

import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from course_utils.data import Scale, air_passengers, make_windows

series, _ = air_passengers()
windows = TensorDataset(*make_windows(Scale.fit(series).apply(series), 25))
"""

MAKE = """
    from course_utils.data import Scale, air_passengers, make_windows
    series, test = air_passengers()
"""

WRONG = {
    "spawnable": [
        ("def my_windows():\n    return windows.tensors", "does not know `windows`"),
        (
            "def my_windows():\n    series, _ = air_passengers()\n"
            "    return make_windows(Scale.fit(series).apply(series), 25)",
            "does not know `air_passengers`",
        ),
        ("my_windows = lambda: windows.tensors", "a lambda has none"),
        ("import functools\nmy_windows = functools.partial(make_windows, series, 25)", "Write a function with `def`"),
        ("def my_windows(windows=windows):\n    return windows.tensors", "brings values along"),
        (f"def my_windows():{MAKE}    return make_windows(series, 25)", "these are passengers"),
        (
            f"def my_windows():{MAKE}    return make_windows(Scale.fit(series).apply(series), 12)",
            "the inputs have shape (109, 12, 1)",
        ),
        (
            f"def my_windows():{MAKE}    return make_windows(Scale.fit(test).apply(series), 25)",
            "is the scale another one?",
        ),
        (f"def my_windows():{MAKE}    return series", "Return the inputs and the targets"),
    ],
    "batch": [
        ("my_batch = 128", "a step uses 1024 samples"),
        ("my_batch = 128 * 8", "You multiplied"),
        ("my_batch = 8", "8 is the number of ranks"),
        ("my_batch = 32", "make a step of 256"),
        ("my_batch = 12.8", "a whole number, but it is 12.8"),
    ],
    "average": [
        ("def my_all_reduce(gradients):\n    return sum(gradients)", "That is the sum"),
        ("def my_all_reduce(gradients):\n    return gradients[0]", "the gradient of rank 0 alone"),
        ("def my_all_reduce(gradients):\n    return (gradients[0] + gradients[1]) / 2", "One device with the whole"),
        ("def my_all_reduce(gradients):\n    return sum(gradients) / 2", "You divided by 2"),
        ("def my_all_reduce(gradients):\n    return torch.stack(gradients).mean()", "a gradient of its own"),
        ("def my_all_reduce(gradients):\n    return gradients", "different gradients"),
        ("def my_all_reduce(gradients):\n    return {'mean': sum(gradients) / 2}", "Return a tensor with a gradient"),
        ("my_all_reduce = lambda gradients: torch.stack(gradients).max(dim=0).values", "One device with the whole"),
    ],
    "shard": [
        (
            "def my_shard(samples, rank, ranks, epoch):\n    return range(samples // ranks)",
            "all ranks have the same samples",
        ),
        ("def my_shard(samples, rank, ranks, epoch):\n    return torch.randperm(samples)", "all ranks have the same"),
        (
            "def my_shard(samples, rank, ranks, epoch):\n"
            "    return list(DistributedSampler(range(samples), num_replicas=ranks, rank=0))",
            "A shard depends on the rank",
        ),
        (
            "def my_shard(samples, rank, ranks, epoch):\n"
            "    order = torch.randperm(samples, generator=torch.Generator().manual_seed(epoch))\n"
            "    return order[rank::ranks]",
            "wait in its last step for ever",
        ),
        (
            "def my_shard(samples, rank, ranks, epoch):\n"
            "    return list(DistributedSampler(range(samples), num_replicas=ranks, rank=rank))",
            "`set_epoch(epoch)`, before it is read",
        ),
        (
            "def my_shard(samples, rank, ranks, epoch):\n"
            "    sampler = DistributedSampler(range(samples), num_replicas=ranks, rank=rank)\n"
            "    order = list(sampler)\n    sampler.set_epoch(epoch)\n    return order",
            "Two epochs in a row",
        ),
        (
            "def my_shard(samples, rank, ranks, epoch):\n"
            "    sampler = DistributedSampler(range(samples), num_replicas=ranks, rank=rank, shuffle=False)\n"
            "    sampler.set_epoch(epoch)\n    return list(sampler)",
            "the same samples in the same order",
        ),
        (
            "def my_shard(samples, rank, ranks, epoch):\n"
            "    order = torch.randperm(samples, generator=torch.Generator().manual_seed(rank + 9 * epoch))\n"
            "    return order[rank * samples // ranks : (rank + 1) * samples // ranks]",
            "do not deal from the same pack",
        ),
        (
            "def my_shard(samples, rank, ranks, epoch):\n"
            "    sampler = DistributedSampler(range(samples), num_replicas=ranks, rank=rank, drop_last=True)\n"
            "    sampler.set_epoch(epoch)\n    return list(sampler)",
            "samples are on no rank",
        ),
        (
            "def my_shard(samples, rank, ranks, epoch):\n    return [1 + n for n in range(rank, samples, ranks)]",
            "but one of yours is 64",
        ),
    ],
}

RIGHT = {
    "spawnable": [
        "def my_windows():\n    import torch\n    from course_utils import data\n"
        "    series = data.air_passengers()[0]\n    scaled = data.Scale.fit(series).apply(series)\n"
        "    return torch.utils.data.TensorDataset(*data.make_windows(scaled, length=25))",
        "def my_windows():\n    import torch\n    from course_utils.data import AIR_PASSENGERS\n"
        "    x = torch.tensor(AIR_PASSENGERS[:121], dtype=torch.float32)\n"
        "    x = (x - x.min()) / (x.max() - x.min())\n"
        "    rows = [x[k : k + 25] for k in range(96)], [x[k + 1 : k + 26] for k in range(96)]\n"
        "    return [torch.stack(part).unsqueeze(2) for part in rows]",
        "def my_windows():\n    def scaled(x):\n        return (x - x.min()) / (x.max() - x.min())\n"
        "    from course_utils.data import air_passengers, make_windows\n"
        "    return make_windows(scaled(air_passengers()[0]), 25)",
    ],
    "batch": ["my_batch = 16", "my_batch = 128 / 8", "my_batch = torch.tensor(128) // 8", "my_batch = int(128 / 8)"],
    "average": [
        "my_all_reduce = lambda gradients: torch.stack(gradients).mean(dim=0)",
        "def my_all_reduce(gradients):\n    total = torch.zeros_like(gradients[0])\n"
        "    for gradient in gradients:\n        total += gradient / len(gradients)\n    return total",
        "def my_all_reduce(gradients):\n    first, *others = gradients\n"
        "    for other in others:\n        first += other\n    first /= len(gradients)\n    return first",
        "def my_all_reduce(gradients):\n    mean = sum(gradients) / len(gradients)\n"
        "    return [mean for _ in gradients]",
        "def my_all_reduce(gradients):\n"
        "    return [sum(float(g[k]) for g in gradients) / len(gradients) for k in range(len(gradients[0]))]",
        "import numpy as np\ndef my_all_reduce(gradients):\n    return np.mean([g.numpy() for g in gradients], axis=0)",
    ],
    "shard": [
        "def my_shard(samples, rank, ranks, epoch):\n"
        "    order = torch.randperm(samples, generator=torch.Generator().manual_seed(epoch)).tolist()\n"
        "    order += order[: -samples % ranks]\n    return order[rank::ranks]",
        "def my_shard(samples, rank, ranks, epoch):\n    random.seed(epoch)\n    order = list(range(samples))\n"
        "    random.shuffle(order)\n    each = math.ceil(samples / ranks)\n"
        "    return tuple(order[(rank * each + k) % samples] for k in range(each))",
        "def my_shard(samples, rank, ranks, epoch):\n    torch.manual_seed(7 + epoch)\n"
        "    order = torch.randperm(samples)\n    each = -(-samples // ranks)\n"
        "    return order[(torch.arange(each) * ranks + rank) % samples]",
        "def my_shard(samples, rank, ranks, epoch):\n"
        "    data = TensorDataset(torch.zeros(samples))\n"
        "    sampler = DistributedSampler(data, ranks, rank, shuffle=True, seed=3)\n"
        "    sampler.set_epoch(epoch)\n    return (index for index in sampler)",
        "def my_shard(samples, rank, ranks, epoch):\n"  # each rank keeps its samples, and shuffles them anew
        "    each = -(-samples // ranks)\n    mine = [(rank + k * ranks) % samples for k in range(each)]\n"
        "    random.Random(epoch).shuffle(mine)\n    return mine",
    ],
}
