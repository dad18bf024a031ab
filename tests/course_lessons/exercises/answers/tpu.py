"""Answers to the exercises of lesson 4."""

CONTEXT = """
import math

import torch

from course_lessons.tpu import exercises as ex
"""

WRONG = {
    "epoch": [
        (
            "def my_epoch(step, sync, batches):\n    total = 0\n    for batch in batches:\n"
            "        total += step(batch).item()\n        sync()\n    return total / len(batches)",
            "Before the last step the loop had read 9 values",
        ),
        (
            "def my_epoch(step, sync, batches):\n    total = 0\n    for batch in batches:\n"
            "        total += step(batch).to('cpu')\n        sync()\n    return total.item() / len(batches)",
            "had read 9 values",
        ),
        (
            "def my_epoch(step, sync, batches):\n    total = 0\n    for number, batch in enumerate(batches):\n"
            "        total += step(batch)\n        sync()\n        if not number:\n            print(total)\n"
            "    return total.item() / len(batches)",
            "had read 1 value from",
        ),
        (
            "def my_epoch(step, sync, batches):\n    total = torch.zeros(())\n    for batch in batches:\n"
            "        sync()\n        total += float(step(batch))\n    return float(total) / len(batches)",
            "Add up on the device, and read once",
        ),
        (
            "def my_epoch(step, sync, batches):\n    total = 0\n    for batch in batches:\n        loss = step(batch)\n"
            "        total += loss\n        message = f'loss so far {loss}'\n        sync()\n"
            "    return total.item() / len(batches)",
            "had read 9 values",
        ),
        (
            "def my_epoch(step, sync, batches):\n    losses = [step(batch) for batch in batches]\n"
            "    return sum(losses).item() / len(batches)",
            "There was no call of the `sync`",
        ),
        (
            "def my_epoch(step, sync, batches):\n    losses = [step(batch) for batch in batches]\n    sync()\n"
            "    return torch.stack(losses).mean().item()",
            "not between the steps",
        ),
        (
            "def my_epoch(step, sync, batches):\n    total = 0\n    for number, batch in enumerate(batches):\n"
            "        total = total + step(batch)\n        if number % 2:\n            sync()\n"
            "    return total.item() / len(batches)",
            "In 5 of 9 places",
        ),
        (
            "def my_epoch(step, sync, batches):\n    losses = []\n    for batch in batches:\n"
            "        losses.append(step(batch))\n        sync()\n"
            "    return sum(loss.item() for loss in losses) / len(losses)",
            "you read 10 values one by one",
        ),
        (
            "def my_epoch(step, sync, batches):\n    for batch in batches:\n        loss = step(batch)\n"
            "        sync()\n    return loss.item()",
            "the loss of the last batch",
        ),
        (
            "def my_epoch(step, sync, batches):\n    total = 0\n    for batch in batches:\n"
            "        total = total + step(batch)\n        sync()\n    return total.item()",
            "the sum of the losses",
        ),
        (
            "def my_epoch(step, sync, batches):\n    total = 0\n    for batch in batches:\n"
            "        total = total + step(batch)\n        sync()\n    return total.item() / 9",
            "but your function returned",
        ),
        (
            "def my_epoch(step, sync, batches):\n    total = 0\n    for batch in batches:\n"
            "        total = total + step(batch)\n        sync()\n    return total / len(batches)",
            "still a tensor on the device",
        ),
        (
            "def my_epoch(step, sync, batches):\n    loss = step(batches[0])\n    sync()\n    return loss.item()",
            "your function did 1 of them",
        ),
    ],
    "room": [
        ("def my_room(length):\n    return length", "need 64 programs"),
        ("def my_room(length):\n    return 64", "only 51% of the rows are words"),
        ("def my_room(length):\n    return length // 16 * 16", "words are cut off"),
        ("def my_room(length):\n    return length // 16 * 16 + 16", "need 5 programs"),
        ("def my_room(length):\n    return 2 ** math.ceil(math.log2(length))", "need 7 programs"),
        ("def my_room(length):\n    return 32 if length <= 32 else 64", "only 68% of the rows"),
        ("def my_room(length):\n    return length / 16 * 16", "need 64 programs"),
        (
            "def my_room(length):\n    return math.ceil(length / 21.5) * 21.5",
            "not a whole number of rows",
        ),
        (
            "def my_room(length):\n    print(math.ceil(length / 16) * 16)",
            "a function without `return`",
        ),
        ("def my_room(length):\n    return length * 10000", "need 64 programs"),
        ("def my_room(length):\n    return 10**15", "only 0% of the rows are words"),
    ],
    "fallback": [
        ("my_loss = ex.robust_loss", "Still a fallback: aten::huber_loss"),
        (
            "def my_loss(p, t):\n    return torch.nn.HuberLoss()(p, t)",
            "Still a fallback: aten::huber_loss",
        ),
        (
            "def my_loss(p, t):\n    return (p - t).abs().median()",
            "aten::median. Which of your lines is that?",
        ),
        ("def my_loss(p, t):\n    return ex.robust_loss(p.cpu(), t.cpu())", "fallback"),
        (
            "def my_loss(p, t):\n    small = (p - t).abs().max().item() < 1\n    return ((p - t) ** 2).mean() / 2",
            "You read values yourself",
        ),
        (
            "def my_loss(p, t):\n    return torch.nn.functional.smooth_l1_loss(p, t)",
            "No fallback, but the loss is",
        ),
        (
            "def my_loss(p, t):\n    return torch.nn.functional.mse_loss(p, t)",
            "No fallback, but the loss is",
        ),
        ("def my_loss(p, t):\n    return 0.5", "a tensor on the device"),
        ("my_loss = 3", "This should be a function of (predictions, targets)"),
    ],
    "shard": [
        ('my_specs = ("model", None), (None, "data")', "holds 32 x 1024 of the batch"),
        ('my_specs = ("data", None), ("model", None)', "holds 512 x 512 of the weight"),
        ('my_specs = ("data", "model"), (None, "model")', "holds 16 x 512 of the batch"),
        ("my_specs = (None, None), (None, None)", "holds 64 x 1024 of the batch"),
        ('my_specs = (("data", "model"), None), (None, "model")', "holds 8 x 1024 of the batch"),
        ('my_specs = ("data", None), ("data", "model")', "holds 256 x 256 of the weight"),
        ('my_specs = ("data", "data"), (None, "model")', "uses an axis twice"),
        ('my_specs = (("data", 0), None), (None, 1)', "uses an axis twice"),
        ('my_specs = ("rows", None), (None, "model")', "is not among them"),
        ('my_specs = ("data",), (None, "model")', "an entry for each of 2 dimensions"),
        ("my_specs = (4, 1), (1, 2)", "is not among them"),
        ("my_specs = (0.0, None), (None, 1.0)", "[0.0] is not among them"),
        ('my_specs = ("data", None)', "A partition spec has an entry"),
        ('my_specs = "data"', "a pair"),
    ],
}

RIGHT = {
    "epoch": [
        "def my_epoch(step, sync, batches):\n    losses = []\n    for batch in batches:\n"
        "        losses.append(step(batch))\n        sync()\n    return torch.stack(losses).mean().item()",
        "def my_epoch(step, sync, batches):\n    total = torch.zeros((), device=batches[0].device)\n"
        "    for batch in batches:\n        total += step(batch)\n        sync()\n"
        "    return float(total) / len(batches)",
        "def my_epoch(step, sync, batches):\n    total = 0.0\n    for batch in batches:\n        sync()\n"
        "        total = total + step(batch).detach()\n    sync()\n    return float(total.cpu() / len(batches))",
        "def my_epoch(step, sync, batches):\n    total = torch.tensor(0.0).to(batches[0].device)\n"
        "    for batch in batches:\n        total += step(batch)\n        sync()\n    return total.item() / 10",
        "def my_epoch(step, sync, batches):\n    def one(batch):\n        loss = step(batch)\n        sync()\n"
        "        return loss\n    return (sum(map(one, batches)) / len(batches)).cpu().item()",
        "def my_epoch(step, sync, batches):\n    losses = torch.zeros(len(batches), device=batches[0].device)\n"
        "    for k in range(len(batches)):\n        losses[k] = step(batches[k])\n        sync()\n"
        "    return losses.mean().tolist()",
    ],
    "room": [
        "my_room = lambda length: math.ceil(length / 16) * 16",
        "def my_room(length):\n    for bucket in (8, 16, 32, 64):\n        if length <= bucket:\n"
        "            return bucket",
        "def my_room(length):\n    return max(16, 2 ** math.ceil(math.log2(length)))",
        "def my_room(length):\n    return min(bucket for bucket in [22, 43, 64] if bucket >= length)",
        "import numpy as np\ndef my_room(length):\n    return np.ceil(length / 16).astype(int) * 16",
        "import numpy as np\ndef my_room(length):\n    return np.ceil(length / 16) * 16",
        "def my_room(length):\n    return length + (-length) % 16",
    ],
    "fallback": [
        "def my_loss(p, t):\n    e = (p - t).abs()\n    outliers = torch.where(e < 1, e**2 / 2, e - 0.5)"
        "\n    return outliers.mean() + 0.01 * p.clamp(-3, 3).square().mean().sqrt()",
        "def my_loss(p, t):\n    size = p.clamp(-3, 3).pow(2).mean() ** 0.5\n"
        "    return torch.nn.SmoothL1Loss()(p, t) + size / 100",
    ],
    "shard": [
        'my_specs = [("data", None), (None, "model")]',
        "my_specs = (0, None), (None, 1)",
        'my_specs = [["data"], None], (None, ("model",))',
    ],
}
