"""Answers to the exercises of lesson 4."""

CONTEXT = """
import math

import torch
"""

WRONG = {
    "pod": [
        ("my_count = 32", "32 is what the name counts: cores"),
        ("my_count = 4", "the number of its hosts"),
        ("my_count = 8", "one board of v2 or v3"),
        ("my_count = 32 * 2", "You took the 32 for chips"),
        ("my_count = 24", "neither its cores nor its chips"),
        ("my_count = '16'", "how many devices, a number"),
    ],
    "epoch": [
        (
            "def my_epoch(step, sync, batches):\n    total = 0\n    for batch in batches:\n"
            "        total += step(batch).item()\n        sync()\n    return total / len(batches)",
            "Before the last step the loop had read 9 values",
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
        ("def my_room(length):\n    return length / 16 * 16", "a whole number of rows"),
        ("def my_room(length):\n    return length * 10000", "Almost all of that"),
    ],
    "devices": [
        ("my_devices = 4", "Lightning refuses 4 of 8"),
        ("my_devices = [4]", "the fifth core"),
        ("my_devices = 3", "Lightning refuses 3 of 8"),
        ("my_devices = '4'", "Lightning refuses 4 of 8"),
        ("my_devices = [0, 1, 2, 3]", "refuses 4 in it"),
        ("my_devices = 1", "the first one"),
        ("my_devices = 8", "all eight cores"),
        ("my_devices = 'auto'", "all eight cores"),
        ("my_devices = '8'", "all eight cores"),
        ("my_devices = -1", "Lightning refuses -1 of 8"),
        ("my_devices = [1]", "but not the fourth one"),
        ("my_devices = ['3']", "a number, a list of one index"),
        ("my_devices = torch.tensor([3])", "a Python number, list or text"),
    ],
}

RIGHT = {
    "pod": ["my_count = 16", "my_count = 32 / 2", "my_count = 4 * 4", "my_count = torch.tensor(16)"],
    "epoch": [
        "def my_epoch(step, sync, batches):\n    losses = []\n    for batch in batches:\n"
        "        losses.append(step(batch))\n        sync()\n    return torch.stack(losses).mean().item()",
        "def my_epoch(step, sync, batches):\n    total = torch.zeros((), device=batches[0].device)\n"
        "    for batch in batches:\n        total += step(batch)\n        sync()\n"
        "    return float(total) / len(batches)",
        "def my_epoch(step, sync, batches):\n    total = 0.0\n    for batch in batches:\n        sync()\n"
        "        total = total + step(batch).detach()\n    sync()\n    return float(total.cpu() / len(batches))",
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
        "def my_room(length):\n    return length + (-length) % 16",
    ],
    "devices": ["my_devices = (3,)", "my_devices = '3,'", "my_devices = list(range(3, 4))", "my_devices = [4 - 1]"],
}
