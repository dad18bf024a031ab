"""Calls, names, keywords and commands of old guides that are outdated, and what replaces each: `old_names.json`.

Every entry was tried with torch 2.9, torch_xla 2.9, Lightning 2.6 and Darts 0.48; the tests try each again.
"""

import json
from pathlib import Path

TABLES = json.loads((Path(__file__).parent / "old_names.json").read_text())

ALIASES: dict[str, str] = TABLES["aliases"]  # what guides call their modules without always showing the import
# By full name, and by the name of a method that a LightningModule once had: what to write today, and why.
CALLS: dict[str, tuple[str, str]] = {old: (new, why) for old, (new, why) in TABLES["calls"].items()}
METHODS: dict[str, tuple[str, str]] = {old: (new, why) for old, (new, why) in TABLES["methods"].items()}
KEYWORDS: list[list[str]] = TABLES["keywords"]  # function or "" for any, keyword, what to write today, why
TEXTS: list[list[str]] = TABLES["texts"]  # in a shell line or in a string: pattern, what to write today, why

SPAWN = ("torch_xla.launch(function)", "It takes 1 or None as nprocs: all devices or one.")
NEXT = "Python 3 iterators have no next method, and a DataLoader's has lost the one that it had."

# Reading a clock, and what waits for a GPU before it is read.
CLOCKS = {"time.time", "time.perf_counter", "time.monotonic", "datetime.datetime.now", "timeit.default_timer"}
WAITS = {"synchronize", "item", "tolist", "cpu", "numpy", "sync", "wait_device_ops", "wait_for", "elapsed_time"}
CLOCK = (
    "torch.cuda.synchronize() before it",
    "A GPU is only handed its work: this clock stops before the work is done.",
)
