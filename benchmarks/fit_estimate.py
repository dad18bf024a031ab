"""Fit the numbers of the model of time, and print how far it is off on what was not fitted on.

    python benchmarks/fit_estimate.py [--write]
    PYTHONPATH=.venv/networks python benchmarks/fit_estimate.py --count NEUSIGHT

The first reads the counted networks and the published measurements of the package, prints the
tables, and with --write keeps the numbers in step_time.json and the predictions with each card left
out in language_models.csv. It takes a minute. The second counts the language models of a checkout
of sitar-lab/NeuSight anew (it needs transformers) and copies what was measured and predicted there.

count_networks.py counts the image networks anew. What each number is fitted on is said in
step_time.json; the shares of the peak that chips achieve (chips.json) were measured by others and
are no part of this.
"""

import argparse
import csv
import io
import json
import math
import statistics
import subprocess
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
from course_lessons.evidence.published import published, work_of
from evidence.steps import LANGUAGE_MODELS, language_steps, published_steps

from course_tools.estimate.chips import find_chip
from course_tools.estimate.time.step_time import STEP_TIME_FILE, Host, fitted, numbers, seconds

CARDS = {  # as NeuSight writes them; of the others, one die of an MI250 and no P4
    "Tesla_P100-PCIE-16GB": "P100 PCIe",
    "Tesla_V100-PCIE-32GB": "V100 PCIe",
    "Tesla_T4": "T4",
    "NVIDIA_A100-PCIE-40GB": "A100 PCIe 40GB",
    "NVIDIA_A100_80GB_PCIe": "A100 PCIe 80GB",
    "NVIDIA_H100_80GB_HBM3": "H100 SXM",
    "NVIDIA_L4": "L4",
    "AMD_Instinct_MI100": "MI100",
    "AMD_Instinct_MI210": "MI210",
    "AMD_Instinct_MI250": "MI250",
}
METHODS = {
    "neusight": "NeuSight",
    "roofline": "roofline",
    "habitat": "Habitat",
    "micro": "Li et al.",
}
CLASSES = {
    "70 W": ("T4", "L4"),
    "data centre": ("P100", "V100", "A100", "H100"),
    "gaming": ("RTX",),
    "AMD": ("MI",),
}


def predict(work, chip, values):
    """Return the seconds of a step with other numbers than those of the package."""
    peak = chip.peak(work.precision) * chip.achieved(work.precision)
    return seconds(
        work,
        peak=peak,
        convolution_peak=peak,
        plain_peak=chip.peak("fp32"),
        winograd=work.precision == "fp32",
        bandwidth=chip.bandwidth_gb_per_s * 1e9,
        numbers=values,
        host=Host(values["step_s"], values["launch_s"], ""),
    ).total_s


def error(rows, values):
    """Return the mean |log(estimated / measured)| of (work, chip, measured seconds)."""
    logs = [abs(math.log(predict(work, chip, values) / s)) for work, chip, s in rows]
    return statistics.fmean(logs)


def search(groups, values, names, rounds=3):
    """Return the numbers with those in `names` changed so that the groups' mean error is least.

    Each number is tried at steps of two per cent up and down, one after the other.
    """

    def total(tried):
        return statistics.fmean(error(rows, tried) for rows in groups)

    best, least = dict(values), total(values)
    for step in (0.1, 0.02) * rounds:
        for name in names:
            for change in (1 + step, 1 / (1 + step)):
                while (loss := total(tried := best | {name: best[name] * change})) < least:
                    best, least = tried, loss
    return best


def language_rows(vendor="NVIDIA"):
    """Return (work, chip, seconds) of the language models, by chip."""
    found = defaultdict(list)
    for row in language_steps():
        chip = find_chip(row.device)
        if chip.vendor == vendor:
            found[chip.name].append((row.work, chip, row.measured_s))
    return found


def image_rows(every=1, **asked):
    """Return (work, chip, seconds) of published image networks, of each `every`th."""
    rows = [row for row in published(count=1, compiled=False, **asked) if work_of(row)]
    return [(work_of(row), find_chip(row.device), row.step_s) for row in rows[::every]]


def unaligned(values):
    """Return how many times as long tensor cores take for products with rows of an odd number:
    from a step that was published with its 50,257 words and with the words padded to 50,304.
    """
    steps = {row.model: row for row in published_steps()}
    plain, padded = (steps[f"GPT-2 124M compiled{name}"] for name in ("", ", padded"))
    chip = find_chip(plain.device)
    achieved = chip.peak("bf16") * chip.achieved("bf16")
    aligned_s = values["arithmetic"] * plain.work.unaligned / achieved
    return 1 + (plain.measured_s - padded.measured_s) / aligned_s


def within(ratios, share):
    """Return the factor within which a share of the ratios lie."""
    return float(np.exp(np.quantile(np.abs(np.log(ratios)), share)))


def show(title, ratios):
    """Print one line: how many, mean error, half and nine in ten within which factor, median."""
    mean = statistics.fmean(abs(ratio - 1) for ratio in ratios)
    half, most = within(ratios, 0.5), within(ratios, 0.9)
    middle = statistics.median(ratios)
    print(
        f"{title:44} {len(ratios):5}  mean {mean:6.1%}  {half:.2f}  {most:.2f}  median {middle:.2f}"
    )


def main():
    """Fit, print and, if asked, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=Path, metavar="NEUSIGHT", help="count its language models")
    parser.add_argument("--write", action="store_true", help="keep what was fitted")
    asked = parser.parse_args()
    if asked.count:
        write_language_models(asked.count)
    values = numbers()
    language = language_rows()
    seen = image_rows(5, device="RTX 3090", training=False)
    trained = image_rows(5, device="RTX 3090", training=True)
    old = image_rows(precision="fp32", source="DeepLearningExamples", training=False)
    large = [row for row in old if row[0].batch >= 16]
    together = ["arithmetic", "memory", "convolution_memory"]
    all_language = [row for rows in language.values() for row in rows]
    values = search([all_language, seen], values, together)
    values = search([large], values, ["convolution_fp32"])
    values = search([trained], values, ["convolution_training"])
    values["unaligned"] = unaligned(values)
    print({name: float(f"{value:.3g}") for name, value in values.items()})
    left_out = leave_one_out(language, seen, values, together)
    report(left_out, language, seen, values, together)
    if asked.write:
        write(values, left_out)


def leave_one_out(language, seen, values, names):
    """Return the predicted seconds of each language model on cards left out in turn."""
    found = {}
    for card in language:
        rest = [row for name, rows in language.items() if name != card for row in rows]
        fitted_without = search([rest, seen], values, names, rounds=1)
        for work, chip, _ in language[card]:
            found[card, work] = predict(work, chip, fitted_without)
    return found


def report(left_out, language, seen, values, names):
    """Print the tables of what was not fitted on."""
    print("\nlanguage models, each card left out in turn")
    pairs = [(card, *row) for card, rows in language.items() for row in rows]
    ours = [left_out[card, work] / s for card, work, _, s in pairs]
    show("ours", ours)
    for method in METHODS.values():
        known = [row for row in language_steps() if find_chip(row.device).vendor == "NVIDIA"]
        show(method, [row.predicted_s[method] / row.measured_s for row in known])
    for title, starts in CLASSES.items():
        part = [r for r, (card, *_) in zip(ours, pairs, strict=True) if card.startswith(starts)]
        if part:
            show(f"  {title}: mean of ratios {statistics.fmean(part):.3f}", part)
    for card, rows in language_rows("AMD").items():
        show(f"  {card}", [predict(work, chip, values) / s for work, chip, s in rows])
    for title, starts in CLASSES.items():
        rest = [
            row for card, rows in language.items() if not card.startswith(starts) for row in rows
        ]
        gone = [row for card, rows in language.items() if card.startswith(starts) for row in rows]
        if gone:
            without = search([rest, seen], values, names, rounds=1)
            show(f"class left out: {title}", [predict(w, c, without) / s for w, c, s in gone])
    print("\nimage networks")
    groups = defaultdict(list)
    for row in published(count=1, compiled=False):
        work = None if row.device.startswith("Core") else work_of(row)
        if work:
            step = "training" if row.training else "inference"
            estimated = predict(work, find_chip(row.device), values)
            groups[row.device, row.torch, row.precision, step].append(estimated / row.step_s)
    for key, ratios in sorted(groups.items()):
        show(" ".join(key), ratios)


def write(values, left_out):
    """Keep the numbers, and what was predicted with each card left out."""
    data = fitted()
    for name, value in values.items():
        data["numbers"][name]["value"] = float(f"{value:.3g}")
    save(data)
    rows = []
    for row in language_steps():
        chip = find_chip(row.device)
        ours = left_out.get((chip.name, row.work)) or predict(row.work, chip, values)
        rows.append(replace(row, predicted_s=row.predicted_s | {"ours": ours}))
    save_language_models(rows, LANGUAGE_MODELS.read_text().splitlines()[0])


def save(data):
    """Write step_time.json, a line for each number, factor and group of measurements."""
    lines = ["{", f' "about": {json.dumps(data["about"])},']
    for part in ("numbers", "factors"):
        pairs = [f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in data[part].items()]
        lines += [f' "{part}": {{', ",\n".join(pairs), " },"]
    groups = [f"  {json.dumps(one)}" for one in data["evidence"]]
    lines += [f' "share": {data["share"]},', ' "evidence": [', ",\n".join(groups), " ]", "}", ""]
    STEP_TIME_FILE.write_text("\n".join(lines))


def save_language_models(rows, first_line):
    """Write language_models.csv."""
    text = io.StringIO()
    text.write(first_line + "\n")
    writer = csv.writer(text, lineterminator="\n")
    sums = ("matrix_flops", "matrix_bytes", "matrix_kernels", "other_bytes", "other_kernels")
    head = ("device", "model", "tokens", "batch", "training", "parameters", "measured_s")
    methods = (*METHODS.values(), "ours")
    writer.writerow([*head, *methods, *sums])
    for row in rows:
        work = row.work
        parts = (work.matrix.flops, work.matrix.bytes_moved, work.matrix.kernels)
        parts += (work.other.bytes_moved, work.other.kernels)
        said = [row.predicted_s.get(method) for method in methods]
        asked = (row.device, row.model, row.tokens, work.batch, int(work.training), work.parameters)
        cells = [*asked, row.measured_s, *said, *parts]
        writer.writerow(
            [f"{x:.6g}" if isinstance(x, float) else "" if x is None else x for x in cells]
        )
    LANGUAGE_MODELS.write_text(text.getvalue())


def write_language_models(repo):
    """Copy what NeuSight measured and predicted, and count its models."""
    from count_language_models import count, measured

    commit, date = git(repo, "log", "-1", "--format=%H %cs").split()
    source = {"address": "https://github.com/sitar-lab/NeuSight", "commit": commit, "date": date}
    source |= {"licence": "MIT", "file": "scripts/asplos/summary/summary.csv"}
    rows = measured(git(repo, "show", "HEAD:scripts/asplos/summary/summary.csv"), CARDS, METHODS)
    save_language_models(
        count(rows, lambda path: git(repo, "show", f"HEAD:{path}")), f"# {json.dumps(source)}"
    )


def git(repo, *command):
    """Return what a git command prints in a checkout or a git directory."""
    where = ["--git-dir", str(repo)] if (repo / "HEAD").exists() else ["-C", str(repo)]
    return subprocess.run(
        ["git", *where, *command], check=True, capture_output=True, text=True
    ).stdout


if __name__ == "__main__":
    print(f"numbers of today: {fitted()['numbers'].keys()}")
    main()
