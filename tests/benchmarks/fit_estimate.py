"""Fit the numbers of the estimate on one card, and print how far it is off on cards, batches and
trainings not seen.

    python tools/published_measurements.py CHECKOUT CHECKOUT published.csv.gz
    PYTHONPATH=.venv/networks python tests/benchmarks/fit_estimate.py published.csv.gz \
      --cache counted.json [--models 400] [--write]

It needs timm, whose networks the measurements are of. Counting takes one to five seconds a model,
and all 2,281 over an hour; the cache keeps what is done, also of a run that was stopped.
The three numbers of memory and arithmetic are fitted on inference with the RTX 3090 alone, the one
of training on its trainings, and the two of the host (which large batches hide) on EfficientNet at
batch 1 to 8. Everything else that is printed has not been fitted on.
"""

import argparse
import csv
import gzip
import io
import json
import math
import random
import statistics
from pathlib import Path

import timm
import torch

from course_utils.estimate.chips import find_chip
from course_utils.estimate.counting import count_work
from course_utils.estimate.speeds import COUNTED
from course_utils.estimate.steptime import DATA, fitted, parts

PLAIN = {"source": "pytorch-image-models", "precision": "fp16", "compiled": "0", "training": "0"}
FIT = PLAIN | {"device": "RTX 3090"}
HELD_OUT = {
    "RTX 4090": PLAIN | {"device": "RTX 4090", "torch": "2.4.0"},
    "RTX 4090, torch 2.9.1": PLAIN | {"device": "RTX 4090", "torch": "2.9.1"},
    "RTX 5090": PLAIN | {"device": "RTX 5090"},
    "RTX PRO 6000 Max-Q": PLAIN | {"device": "RTX PRO 6000 Max-Q"},
}
PAIRS = [("RTX 3090", "RTX 4090"), ("RTX 3090", "RTX 5090"), ("RTX 4090, torch 2.9.1", "RTX 5090")]
PAIRS += [("RTX 5090", "RTX PRO 6000 Max-Q")]
TRAIN = {"source": "pytorch-image-models", "training": "1"}
SWEEPS = {"source": "DeepLearningExamples", "count": "1"}


def read(table):
    """Return the rows of the published table."""
    lines = gzip.decompress(Path(table).read_bytes()).decode().split("\n", 1)[1]
    return list(csv.DictReader(io.StringIO(lines)))


def pick(rows, asked):
    """Return the rows whose columns are as asked."""
    return [row for row in rows if all(row[key] == value for key, value in asked.items())]


class Counts:
    """The amounts of each measured step, counted once and kept in a file: [kernels, bytes, bytes,
    flops, names].
    """

    def __init__(self, path):
        self.path = Path(path)
        self.known = json.loads(self.path.read_text()) if self.path.exists() else {}

    def of(self, row):
        """Return the amounts of a row's step, or None where the model cannot be counted."""
        if row["source"] == "DeepLearningExamples" and row["training"] == "0":
            # every amount is a straight line over the batch
            one, many = self.at(row, 1), self.at(row, 32)
            share = (int(row["batch"]) - 1) / 31
            return [x + (y - x) * share for x, y in zip(one[:4], many[:4], strict=True)]
        return self.at(row, int(row["batch"]))

    def at(self, row, batch):
        twin = "16" if row["precision"] == "fp16" else "32"
        key = f"{row['model']} {row['image']} {batch} {row['training']} {twin}"
        if key not in self.known:
            self.known[key] = self.count(row, batch)
            if len(self.known) % 20 == 0:
                self.save()
        return self.known[key]

    def count(self, row, batch):
        try:
            # The trainings were measured with torch 1.12, which had no fused attention yet.
            timm.layers.set_fused_attn(row["training"] == "0")
            model = self.build(row["model"])
            image = torch.empty(
                1, model.pretrained_cfg["input_size"][0], int(row["image"]), int(row["image"])
            )
            training = row["training"] == "1"
            work = count_work(
                model, image, batch=batch, precision=row["precision"], training=training
            )
        except (
            Exception
        ) as error:  # renamed since, or not countable: reported by its number in the tables
            print(f"  left out: {row['model']}: {str(error).splitlines()[0][:90]}")
            return None
        reordered = sum(op.bytes_moved for op in work.ops if op.kind == "convolution")
        names = sorted({op.name for op in work.ops})
        return [work.kernels, work.bytes_moved - reordered, reordered, work.flops, names]

    def build(self, name):
        try:
            with torch.device("meta"):  # without weights, which nobody needs here
                return timm.create_model(name)
        except (RuntimeError, NotImplementedError):  # it reads its own weights while it is built
            return timm.create_model(name)

    def save(self):
        self.path.write_text(json.dumps(self.known))


def write_counts(known):
    """Write what the package keeps of the counts: each network at the largest batch that was
    counted.
    """
    kept = {}
    for key, amounts in known.items():
        model, image, batch, training, twin = key.split()
        place = model, int(image), int(training), int(twin == "16")
        if amounts and int(batch) > kept.get(place, (0,))[0]:
            kept[place] = (int(batch), *amounts[:4])
    lines = [
        f'# {{"counted": "by course_utils.estimate.counting, of the networks of timm {timm.__version__}"}}'
    ]
    lines.append("model,image,training,half,batch,kernels,bytes,convolution_bytes,flops")
    for place, (batch, kernels, *grows) in sorted(kept.items()):
        lines.append(",".join(map(str, (*place, batch, kernels, *(f"{x:.5g}" for x in grows)))))
    COUNTED.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n", mtime=0))


def predict(amounts, chip, precision, numbers, training):
    """Return the estimated seconds of a step."""
    bandwidth, peak = chip.bandwidth_gb_per_s * 1e9, chip.peak(precision)
    launch, memory, arithmetic = parts(amounts, bandwidth, peak, numbers, training=training)
    return (launch**2 + (memory + arithmetic) ** 2) ** 0.5


def table_of(rows, counts, numbers, like=None):
    """Return estimated / measured for each row that can be counted, by (model, image)."""
    found = {}
    for row in rows:
        base = (like or {}).get((row["model"], row["image"]), row)
        amounts = counts.of(base)
        if amounts:  # kernels do not grow with the batch; everything else does
            grown = int(row["batch"]) / int(base["batch"])
            amounts = [amounts[0], *(x * grown for x in amounts[1:4])]
            measured = int(row["batch"]) / float(row["samples_per_s"])
            key = (row["model"], row["image"]) if like is not None else tuple(row.values())
            chip, training = find_chip(row["device"]), row["training"] == "1"
            found[key] = predict(amounts, chip, row["precision"], numbers, training) / measured
    return found


def fit(rows, counts, numbers, names, steps=1500):
    """Return `numbers` with those in `names` changed so that the mean |log(estimated / measured)|
    is least.

    The rows are all of trainings, or all of inference.
    """
    rows, training = [row for row in rows if counts.of(row)], rows[0]["training"] == "1"
    amounts = torch.tensor([counts.of(row)[:4] for row in rows], dtype=torch.float64).T
    chips = [find_chip(row["device"]) for row in rows]
    bandwidth = torch.tensor([chip.bandwidth_gb_per_s * 1e9 for chip in chips], dtype=torch.float64)
    peak = torch.tensor(
        [chip.peak(row["precision"]) for chip, row in zip(chips, rows, strict=True)],
        dtype=torch.float64,
    )
    measured = torch.tensor(
        [int(row["batch"]) / float(row["samples_per_s"]) for row in rows], dtype=torch.float64
    )
    logs = torch.tensor(
        [math.log(numbers[name]) for name in names], dtype=torch.float64, requires_grad=True
    )
    optimizer = torch.optim.Adam([logs], lr=0.01)
    for _ in range(steps):
        tried = numbers | dict(zip(names, logs.exp(), strict=True))
        launch, memory, arithmetic = parts(amounts, bandwidth, peak, tried, training=training)
        loss = (torch.hypot(launch, memory + arithmetic) / measured).log().abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"fitted on {len(rows)} rows: {', '.join(names)}")
    return numbers | dict(zip(names, logs.exp().tolist(), strict=True))


def factor(ratios, share):
    """Return the factor within which `share` of the ratios lie."""
    return math.exp(
        statistics.quantiles([abs(math.log(x)) for x in ratios], n=100)[round(share * 100) - 1]
    )


def show(title, ratios):
    """Print one line: how many, half, 80 % and 90 % within which factor, and the median of
    estimated / measured.
    """
    within = "  ".join(f"{share:.0%} {factor(ratios, share):.2f}" for share in (0.5, 0.8, 0.9))
    print(f"{title:44} {len(ratios):5} rows   {within}   median {statistics.median(ratios):.2f}")


def main():
    """Fit, print and, if asked, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table")
    parser.add_argument("--cache", default="counted.json")
    parser.add_argument(
        "--models", type=int, default=400, help="drawn by a seed, for inference and training each"
    )
    parser.add_argument(
        "--cached",
        action="store_true",
        help="use the models in the cache, and count no other of timm's",
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="write course_utils/estimate/fitted.json and counted.csv.gz",
    )
    asked = parser.parse_args()
    rows, counts = read(asked.table), Counts(asked.cache)
    numbers = {name: entry["value"] for name, entry in fitted()["numbers"].items()}

    def drawn(wanted):
        have = [
            r
            for r in wanted
            if f"{r['model']} {r['image']} {r['batch']} {r['training']} 16" in counts.known
        ]
        return (
            have
            if asked.cached
            else random.Random(0).sample(wanted, min(asked.models, len(wanted)))
        )

    seen, training = drawn(pick(rows, FIT)), drawn(pick(rows, TRAIN))
    sweeps = pick(rows, SWEEPS | {"training": "0"})
    host = [r for r in sweeps if r["model"].startswith("efficientnet") and int(r["batch"]) <= 8]
    for _ in range(2):
        numbers = fit(seen, counts, numbers, ["arithmetic", "memory", "convolution_memory"])
        numbers = fit(host, counts, numbers, ["launch_s", "step_s"])
    numbers = fit(training, counts, numbers, ["training"])
    counts.save()
    print({name: float(f"{value:.3g}") for name, value in numbers.items()})
    report_scaling(rows, numbers)
    report(rows, seen, training, counts, numbers, asked.write)


def report(rows, seen, training, counts, numbers, write):
    """Print the tables of what was not fitted on, and write the factors."""
    like = {(row["model"], row["image"]): row for row in seen}
    found = {"RTX 3090": table_of(seen, counts, numbers, like)}
    show("RTX 3090, inference (fitted on it)", list(found["RTX 3090"].values()))
    for name, asked in HELD_OUT.items():
        held = [row for row in pick(rows, asked) if (row["model"], row["image"]) in like]
        found[name] = table_of(held, counts, numbers, like)
        show(f"{name}, inference", list(found[name].values()))
    for one, other in PAIRS:
        both = found[one].keys() & found[other].keys()
        show(f"speed-up {one} -> {other}", [found[one][key] / found[other][key] for key in both])
    trained = list(table_of(training, counts, numbers).values())
    show("RTX 3090, training (fitted on it)", trained)
    single = pick(rows, SWEEPS)
    groups = {}
    for key, ratio in table_of(single, counts, numbers).items():
        row = dict(zip(single[0], key, strict=True))
        groups.setdefault(
            (row["model"], row["device"], row["precision"], row["training"]), []
        ).append((row, ratio))
    for (model, device, precision, train), pairs in sorted(groups.items()):
        text = " ".join(f"{row['batch']}:{ratio:.2f}" for row, ratio in pairs)
        print(
            f"{model:20}{device:16}{precision:5}{'training' if train == '1' else 'inference':10}{text}"
        )
    server = [(row, ratio) for pairs in groups.values() for row, ratio in pairs]
    # 3 rows contradict their own 8-GPU figures
    server = [(row, ratio) for row, ratio in server if ratio > 0.5]
    kinds = {"inference": "0", "training": "1"}
    server = {
        kind: [ratio for row, ratio in server if row["training"] == flag]
        for kind, flag in kinds.items()
    }
    for kind, ratios in server.items():
        show(f"T4, V100 and A100, {kind}", ratios)
    if write:
        write_counts(counts.known)
        save(
            numbers,
            found,
            trained,
            server,
            {name for x in counts.known.values() if x for name in x[4]},
        )


def report_scaling(rows, numbers):
    """Print the step of many GPUs over that of one, and fit its growth with each doubling on
    V100s.
    """
    trained = pick(rows, {"source": "DeepLearningExamples", "training": "1"})
    alike = ("model", "device", "precision", "batch")
    one = {
        tuple(row[key] for key in alike): float(row["samples_per_s"])
        for row in trained
        if row["count"] == "1"
    }
    growth = {}
    for row in trained:
        count, speedup = (
            int(row["count"]),
            float(row["samples_per_s"]) / one[tuple(row[key] for key in alike)],
        )
        if count > 1 and speedup < count:  # more than `count` times contradicts itself
            doubling = (count / speedup) ** (1 / math.log2(count))
            growth.setdefault((row["device"].split()[0], count), []).append(
                (doubling, count / speedup)
            )
    fitted_on = [
        doubling
        for (device, count), found in growth.items()
        if device == "V100"
        for doubling, _ in found
    ]
    numbers["doubling"] = statistics.median(fitted_on)
    for (device, count), found in sorted(growth.items()):
        ratios = [numbers["doubling"] ** math.log2(count) / slower for _, slower in found]
        print(
            f"{device} x {count}: {len(ratios)} rows, estimated / measured step {min(ratios):.2f} to {max(ratios):.2f}"
        )


def save(numbers, found, trained, server, operations):
    """Write the numbers and the factors of error to the package."""
    data = json.loads(DATA.read_text())
    for name, value in numbers.items():
        data["numbers"][name]["value"] = float(f"{value:.3g}")
    worst = max(factor(found[name].values(), 0.9) for name in HELD_OUT)
    data["factors"]["inference"]["factor"] = round(max(worst, factor(server["inference"], 0.9)), 2)
    # Trainings were compared on fewer cards, so their factor is never smaller.
    worst = max(
        data["factors"]["inference"]["factor"],
        factor(trained, 0.9),
        factor(server["training"], 0.9),
    )
    data["factors"]["training"]["factor"] = round(worst, 2)
    medians = [abs(math.log(statistics.median(found[name].values()))) for name in HELD_OUT]
    data["factors"]["cards"]["factor"] = round(math.exp(max(medians)), 2)
    data["factors"]["operations"]["checked"] = sorted(operations)
    DATA.write_text(json.dumps(data, indent=2) + "\n")


if __name__ == "__main__":
    main()
