"""Count the image networks of the package anew, each at the batch at which it was measured.

    PYTHONPATH=.venv/networks nice -n 19 python benchmarks/count_networks.py ROWS.csv
    PYTHONPATH=.venv/networks python benchmarks/count_networks.py --sample 40

The first counts the 2,370 steps of counted_networks.csv.gz with the present engine, in 40 minutes
of CPU, and then replaces that file. What it has counted stands in ROWS.csv, so it can be stopped
and go on.
The second counts so many steps, drawn with a fixed seed, and says how far they are from the file.

89 networks are counted twice: as they are trained, and with their parallel branches merged, which
is how timm measured them with PyTorch 2.9.1.
"""

import argparse
import csv
import gzip
import io
import json
import random
import statistics
import warnings
from functools import cache
from pathlib import Path

import timm
import torch
from course_lessons.evidence.published import MERGED_WITH, published
from timm.utils import reparameterize_model

from course_tools.estimate.counting.count_work import count_work
from course_tools.estimate.counting.work import OP_KINDS
from course_tools.estimate.known_networks import COUNTED, MERGED, networks

KEY = ("model", "image", "training", "half")
AMOUNTS = {"flops": "flops", "bytes": "bytes_moved", "kernels": "kernels"}
SUMS = [f"{kind}_{amount}" for kind in OP_KINDS for amount in AMOUNTS]
MORE = ("unaligned",)
COLUMNS = (*KEY, "batch", "parameters", "trained", *SUMS, *MORE)


def main():
    """Count everything and write the file, or count a sample and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=Path, nargs="?", help="CSV to keep what was counted so far")
    parser.add_argument("--sample", type=int, help="count so many, compare, and write nothing")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # timm's, about names that it has changed
    if asked.sample:
        far = []
        for key in random.Random(0).sample(sorted(networks()), asked.sample):
            known = networks()[key]
            far.append(distance(known, count(*key, known.work.batch)))
            print(*key, f"{far[-1]:.4f}", flush=True)
        print(f"median {statistics.median(far):.4f}, largest {max(far):.4f}")
        return
    if not asked.rows.exists():
        asked.rows.write_text(",".join(COLUMNS) + "\n")
    with asked.rows.open() as lines:
        done = {tuple(row[name] for name in KEY) for row in csv.DictReader(lines)}
    with asked.rows.open("a") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        for (name, image, training, half), batch in sorted(batches().items()):
            if (name, str(image), str(int(training)), str(int(half))) in done:
                continue
            try:
                writer.writerow(count(name, image, training, half, batch))
            except RuntimeError as error:
                print(name, image, training, half, error, flush=True)
            file.flush()
    save(asked.rows)


def batches():
    """Return the batch of each step to count, by name, side of the image, training and 16 bits."""
    found = {key: network.work.batch for key, network in networks().items()}
    for row in published(torch=MERGED_WITH, compiled=False, training=False):
        if can_merge(row.model):
            found[row.model + MERGED, row.image, False, True] = row.batch
    return found


@cache
def can_merge(name):
    """Return whether timm knows how to merge branches of a network."""
    with torch.device("meta"):
        modules = timm.create_model(name).modules()
    ways = "fuse", "reparameterize", "switch_to_deploy"  # those of reparameterize_model
    return any(hasattr(module, way) for module in modules for way in ways)


def count(name, image, training, half, batch):
    """Return the row of a step, with Adam's update apart: that does not grow with the batch."""
    # Trainings were measured with PyTorch 1.12, which computed attention in steps.
    timm.layers.set_fused_attn(not training)
    if name.endswith(MERGED):
        model = timm.create_model(name.removesuffix(MERGED)).eval()
        model = reparameterize_model(model).to("meta")  # merging needs the weights themselves
    else:
        with torch.device("meta"):
            model = timm.create_model(name)
    pixels = torch.empty(1, 3, image, image)
    precision = "fp16" if half else "fp32"
    work = count_work(model, pixels, batch=batch, precision=precision, training=training)
    trained = work.ops[-1].elements if training else 0
    row = dict(zip(KEY, (name, image, int(training), int(half)), strict=True))
    row |= {"batch": batch, "parameters": work.parameters, "trained": int(trained) or ""}
    for kind, sums in work.kinds.items():
        for amount, attribute in AMOUNTS.items():
            row[f"{kind}_{amount}"] = getattr(sums, attribute)
    if training:
        row["other_bytes"] -= work.ops[-1].bytes_moved
        row["other_kernels"] -= 1
    row |= {name: getattr(work, name) for name in MORE}
    for column in (*SUMS, *MORE):
        row[column] = f"{row[column]:.5g}" if row[column] else ""
    return row


def distance(known, row):
    """Return the largest of how many times as much is counted now: FLOPs, bytes, kernels."""
    ratios = []
    for amount, attribute in AMOUNTS.items():
        now = sum(float(row[f"{kind}_{amount}"] or 0) for kind in OP_KINDS)
        ratios.append(now / getattr(known.work, attribute))
    return max(max(ratio, 1 / ratio) for ratio in ratios)


def save(rows):
    """Write the file of the package from the rows that were counted."""
    about = {
        "counted": f"by course_tools.estimate.counting, of the networks of timm {timm.__version__}"
    }
    with rows.open() as lines:
        found = sorted(csv.DictReader(lines), key=lambda row: [row[name] for name in KEY])
    text = io.StringIO()
    filled = [name for name in COLUMNS if any(row[name] for row in found)]
    writer = csv.DictWriter(text, filled, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    data = f"# {json.dumps(about)}\n{text.getvalue()}".encode()
    COUNTED.write_bytes(gzip.compress(data, mtime=0))


if __name__ == "__main__":
    main()
