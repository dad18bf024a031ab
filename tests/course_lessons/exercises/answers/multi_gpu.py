"""Answers to the exercises of lesson 3."""

CONTEXT = """
import math
import random

import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from course_lessons.multi_gpu import exercises as ex

shared = ex.BROKEN.replace("shuffle=True", "sampler=(sampler := DistributedSampler(data))")
exchanged = shared.replace("(network(inputs)", "(model(inputs)")
told = exchanged.replace("    seen.append([])", "    seen.append([])\\n    sampler.set_epoch(epoch)")
"""

WRONG = {
    "repair": [
        ("my_script = ex.BROKEN", "This is the script as it was"),
        ("my_script = 'print(1)'", "it starts no process group"),
        (
            "my_script = ex.BROKEN.replace('(network(inputs)', '(model(inputs)')",
            "Both ranks see the same samples",
        ),
        ("my_script = shared", "different weights"),
        ("my_script = exchanged", "Both epochs have the same samples"),
        ("my_script = told.replace('lr=0.1)', 'lr=0.1')", "a rank failed: SyntaxError"),
        (
            "my_script = told.replace('seen[-1] += inputs', 'seen[-1] += inputs[:2]')",
            "each of the 32 samples once",
        ),
        ("my_script = 3", "the text of the script"),
        ("my_script = told.replace('optimizer.step()', '')", "nothing was learned"),
        ("my_script = told.replace('loss.backward()', '')", "nothing was learned"),
        (
            "import textwrap\nmy_script = 'def main():\\n' + textwrap.indent(told, '    ') + 'main()'",
            "At its end your script should have `model`",
        ),
        (
            "my_script = told.replace('network =', 'network = torch.ones(1).cuda() or')",
            "it asks for a CUDA device, and PyTorch sees none here",
        ),
        ("my_script = told.replace('seen', 'samples')", "keep the lines that fill them"),
        (
            "my_script = told.replace('        seen[-1] += inputs.flatten().tolist()\\n', '')",
            "keep the lines that fill them",
        ),
        (
            "my_script = told.replace('    seen.append([])', '    pass').replace('seen[-1]', 'seen')",
            "keep the lines",
        ),
    ],
    "batch": [
        ("my_batch = 128", "a step uses 1024 samples"),
        ("my_batch = 128 * 8", "You multiplied"),
        ("my_batch = 8", "8 is the number of ranks"),
        ("my_batch = 32", "make a step of 256"),
        ("my_batch = 12.8", "make a step of 102.4"),
    ],
    "average": [
        ("def my_all_reduce(gradients):\n    return sum(gradients)", "That is the sum"),
        ("def my_all_reduce(gradients):\n    return gradients[0]", "the gradient of rank 0 alone"),
        (
            "def my_all_reduce(gradients):\n    return (gradients[0] + gradients[1]) / 2",
            "One device with the whole",
        ),
        ("def my_all_reduce(gradients):\n    return sum(gradients) / 2", "You divided by 2"),
        (
            "def my_all_reduce(gradients):\n    return torch.stack(gradients).mean()",
            "a gradient of its own",
        ),
        ("def my_all_reduce(gradients):\n    return gradients", "different gradients"),
        (
            "def my_all_reduce(gradients):\n    return torch.stack(gradients) / len(gradients)",
            "different gradients",
        ),
        (
            "def my_all_reduce(gradients):\n    return {'mean': sum(gradients) / 2}",
            "Return a tensor with a gradient",
        ),
        (
            "my_all_reduce = lambda gradients: torch.stack(gradients).max(dim=0).values",
            "One device with the whole",
        ),
    ],
    "shard": [
        (
            "def my_shard(samples, rank, ranks, epoch):\n    return range(samples // ranks)",
            "all ranks have the same samples",
        ),
        (
            "def my_shard(samples, rank, ranks, epoch):\n    return torch.randperm(samples)",
            "all ranks have the same",
        ),
        (
            "def my_shard(samples, rank, ranks, epoch):\n"
            "    return list(DistributedSampler(range(samples), num_replicas=ranks, rank=0))",
            "A shard depends on the rank",
        ),
        (
            "def my_shard(samples, rank, ranks, epoch):\n"
            "    order = torch.randperm(samples, generator=torch.Generator().manual_seed(epoch))\n"
            "    return order[rank::ranks]",
            "wait in vain in its last step",
        ),
        (
            "def my_shard(samples, rank, ranks, epoch):\n"
            "    return list(DistributedSampler(range(samples), num_replicas=ranks, rank=rank))",
            "`set_epoch(epoch)` before you read the sampler",
        ),
        (
            "def my_shard(samples, rank, ranks, epoch):\n"
            "    sampler = DistributedSampler(range(samples), num_replicas=ranks, rank=rank)\n"
            "    order = list(sampler)\n    sampler.set_epoch(epoch)\n    return order",
            "Two of three epochs",
        ),
        (
            "def my_shard(samples, rank, ranks, epoch):\n"
            "    sampler = DistributedSampler(range(samples), num_replicas=ranks, rank=rank, shuffle=False)\n"
            "    sampler.set_epoch(epoch)\n    return list(sampler)",
            "the same samples in the same order",
        ),
        (
            "def my_shard(samples, rank, ranks, epoch):\n    order = list(range(samples))\n"
            "    order += order[: -samples % ranks]\n    return order[rank::ranks][:: -1 if epoch % 2 else 1]",
            "Two of three epochs",
        ),
        (
            "def my_shard(samples, rank, ranks, epoch):\n"
            "    order = torch.randperm(samples, generator=torch.Generator().manual_seed(rank + 9 * epoch))\n"
            "    return order[rank * samples // ranks : (rank + 1) * samples // ranks]",
            "an order of its own",
        ),
        (
            "def my_shard(samples, rank, ranks, epoch):\n"
            "    sampler = DistributedSampler(range(samples), num_replicas=ranks, rank=rank, drop_last=True)\n"
            "    sampler.set_epoch(epoch)\n    return list(sampler)",
            "samples on no rank: 1.",
        ),
        (
            "def my_shard(samples, rank, ranks, epoch):\n    return [1 + n for n in range(rank, samples, ranks)]",
            "but one of yours is 64",
        ),
    ],
}

RIGHT = {
    "repair": [
        "my_script = told",
        "import pathlib, tempfile\nmy_script = pathlib.Path(tempfile.mkdtemp(), 'mine.py')\nmy_script.write_text(told)",
        "my_script = told.replace('network = torch.nn.Linear(1, 1)\\nmodel', 'model')"
        ".replace('(network)', '(torch.nn.Linear(1, 1))')",
    ],
    "batch": [
        "my_batch = 16",
        "my_batch = 128 / 8",
        "my_batch = torch.tensor(128) // 8",
        "my_batch = int(128 / 8)",
    ],
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
        "import numpy as np\ndef my_all_reduce(gradients):\n"
        "    return [np.mean([g.numpy() for g in gradients], axis=0) for _ in gradients]",
        "def my_all_reduce(gradients):\n    return torch.stack([sum(gradients) / len(gradients) for _ in gradients])",
        "def my_all_reduce(gradients):\n    return torch.stack(gradients).mean(0, keepdim=True)",
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
        # each rank keeps its samples, and shuffles them anew
        "def my_shard(samples, rank, ranks, epoch):\n"
        "    each = -(-samples // ranks)\n    mine = [(rank + k * ranks) % samples for k in range(each)]\n"
        "    random.Random(epoch).shuffle(mine)\n    return mine",
    ],
}
