"""Fit what the framework adds on published trainings on a 24 GiB card, and test it on others.

    PYTHONPATH=.venv/networks python benchmarks/fit_memory.py --traced traced.jsonl \
        [--rows 100] [--write]

It needs timm, whose networks were trained. Its maintainers tried batches from 512 down until one
fitted, so each network asks two questions: does the published batch fit (yes), and does the next
larger one that they tried (no)? A network published at 512, the first that they tried, asks only
the first. Their script (benchmark.py of timm 0.6) trains with automatic mixed precision in 16 bits,
SGD with momentum 0.9, and gradients that stay (`zero_grad` of PyTorch 1.12).
"""

import argparse
import json
import random
import statistics
from pathlib import Path

import timm
import torch
from course_lessons.evidence.memory import FILE, memory_evidence
from course_lessons.evidence.published import published

from course_tools.estimate.chips import find_chip
from course_tools.estimate.memory.estimate_memory import estimate_memory
from course_tools.estimate.memory.memory_model import (
    MEMORY_FILE,
    capacity_bytes,
    memory_numbers,
)

BATCHES = (512, 384, 256, 192, 128, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1)
QUESTIONS = 120
CARD = "RTX 3090"
LIKE_THEIRS = {"optimizer": "momentum", "precision": "fp16", "keep_gradients": True}


def trainings():
    """Return the published trainings, in an order drawn by a seed."""
    rows = published(device=CARD, training=True, count=1, source="pytorch-image-models")
    return random.Random(19).sample(rows, len(rows))


def next_batch(batch):
    """Return the next larger batch that was tried, or None."""
    return BATCHES[BATCHES.index(batch) - 1] if batch < BATCHES[0] else None


def trace(row):
    """Return what is estimated for a row: the tensors at its batch and at the next, in bytes; or
    why not.
    """
    found = {
        "model": row.model,
        "image": row.image,
        "batch": row.batch,
        "next": next_batch(row.batch),
    }
    timm.layers.set_fused_attn(False)  # PyTorch 1.12 had no fused attention yet
    try:
        model = timm.create_model(row.model)
        image = torch.empty(
            1, model.pretrained_cfg["input_size"][0], row.image, row.image, device="meta"
        )
        memory = estimate_memory(model, image, batch=row.batch, **LIKE_THEIRS)
    except Exception as error:
        return found | {"failed": str(error).splitlines()[0][:160]}
    larger = memory.at(found["next"]).tensors_bytes if found["next"] else None
    return found | {"tensors": memory.tensors_bytes, "tensors_next": larger}


def questions(rows):
    """Return (bytes of tensors, whether it fitted) for every question that the rows ask."""
    asked = [(row["tensors"], True) for row in rows]
    return asked + [(row["tensors_next"], False) for row in rows if row["next"]]


def right(asked, numbers, room):
    """Return how many of the questions the numbers answer rightly."""
    return sum(
        (numbers["context_bytes"] + (1 + numbers["gaps"]) * size <= room) == fitted
        for size, fitted in asked
    )


def fit(asked, room):
    """Return the numbers that answer most questions rightly; of several, the middle ones."""
    tried = [
        {"context_bytes": c * 1e8, "gaps": g / 200} for c in range(0, 31) for g in range(0, 41)
    ]
    scores = [right(asked, numbers, room) for numbers in tried]
    best = [numbers for numbers, score in zip(tried, scores, strict=True) if score == max(scores)]
    middle = {name: statistics.median(numbers[name] for numbers in best) for name in best[0]}
    return min(best, key=lambda n: sum(abs(n[k] / (middle[k] or 1) - 1) for k in middle))


def draw(traced):
    """Return the rows tested, those to fit on, and those that could not be traced, in the order of
    the seed.
    """
    failed = [row for row in traced if "failed" in row]
    there = [row for row in traced if "failed" not in row]
    tested = []
    while len(questions(tested)) < QUESTIONS:
        tested.append(there[len(tested)])
    twins = {(row["tensors"], row["batch"]) for row in tested}  # one network under several names
    others = [row for row in there[len(tested) :] if (row["tensors"], row["batch"]) not in twins]
    return tested, others, failed


def main():
    """Trace, fit, print and, if asked, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--traced", default="traced.jsonl", help="what was traced, kept from call to call"
    )
    parser.add_argument(
        "--rows", type=int, default=100, help="networks to trace; those not tested are fitted on"
    )
    parser.add_argument(
        "--write", action="store_true", help="write course_tools/estimate/memory/memory.json"
    )
    asked = parser.parse_args()
    path, rows = Path(asked.traced), trainings()
    traced = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    for row in rows[len(traced) : asked.rows]:
        traced.append(trace(row))
        with path.open("a") as file:
            file.write(json.dumps(traced[-1]) + "\n")
    tested, others, failed = draw(traced[: asked.rows])
    room = capacity_bytes(find_chip(CARD))
    numbers = fit(questions(others), room)
    done = {
        "tested": right(questions(tested), numbers, room),
        "fitted_on": right(questions(others), numbers, room),
    }
    asked_of_others = len(questions(others))
    print(numbers)
    print(f"right: {done['tested']} of {len(questions(tested))}, {len(tested)} networks")
    print(f"fitted on: {done['fitted_on']} of {asked_of_others}, {len(others)} other networks")
    for row in failed:
        print("not traced:", row["model"], row["failed"])
    if asked.write:
        known = {
            "numbers": memory_numbers()["numbers"] | numbers,  # the margins are not fitted
            "card": CARD,
            "right": done,
            "questions": len(questions(tested)),
        }
        MEMORY_FILE.write_text(json.dumps(known, indent=2) + "\n")
        seen = {
            "fitted_on": [row["model"] for row in others],
            "not_traced": failed,
            "tested": tested,
        }
        FILE.write_text(json.dumps(memory_evidence() | seen, indent=1) + "\n")


if __name__ == "__main__":
    main()
