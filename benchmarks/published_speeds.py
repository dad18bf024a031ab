"""Collect published speeds of real devices from checkouts of two public repositories into one
compact table.

Run it again on newer checkouts, with git and nothing else:

    git clone https://github.com/huggingface/pytorch-image-models
    git clone https://github.com/NVIDIA/DeepLearningExamples
    python benchmarks/published_speeds.py pytorch-image-models DeepLearningExamples
    published.csv.gz

Only figures are taken, no text and no code. Each row names its source; the table's first line says,
for each source, the commit, its date and the licence.
"""

import argparse
import csv
import gzip
import io
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

FIELDS = "source file device count model image batch precision compiled training torch "
FIELDS += "samples_per_s gmacs"
DEVICES = {
    "rtx3090": "RTX 3090",
    "rtx4090": "RTX 4090",
    "4090": "RTX 4090",
    "5090": "RTX 5090",
    "pro6000maxq": "RTX PRO 6000 Max-Q",
    "cpu-i7_12700h": "Core i7-12700H",
    "cpu-i9_10940x": "Core i9-10940X",
}
TIMM_NAME = re.compile(
    r"benchmark-(?P<mode>infer|train)-(?P<precision>amp|fp32)-nchw-pt(?P<torch>\d+)-(cu\d+-)?"
    r"(?P<device>.+?)(?P<compiled>-dynamo)?\.csv"
)
OLDER = {"113", "210", "221"}  # measured again with a newer torch
# Folder in NVIDIA's repository -> the name that timm gives to the same network, and the side of its
# image.
NETWORKS = {
    "resnet50v1.5": ("resnet50", 224),
    "resnext101-32x4d": ("resnext101_32x4d", 224),
    "se-resnext101-32x4d": ("seresnext101_32x4d", 224),
    "efficientnet-b0": ("efficientnet_b0", 224),
    "efficientnet-b4": ("efficientnet_b4", 380),
}
# Batch sizes of a training, from configs.yml: network -> card -> (mixed precision, full precision).
BATCHES = {
    "resnet50": {"A100": (256, 256), "V100": (256, 112)},
    "resnext101_32x4d": {"A100": (128, 128), "V100": (128, 64)},
    "seresnext101_32x4d": {"A100": (128, 128), "V100": (112, 64)},
    "efficientnet_b0": {
        "A100": (256, 256),
        "V100 SXM2 16GB": (128, 64),
        "V100 SXM2 32GB": (256, 128),
    },
    "efficientnet_b4": {"A100": (128, 64), "V100 SXM2 16GB": (32, 16), "V100 SXM2 32GB": (64, 32)},
}
CARDS = {
    "A100 80GB": "A100 80GB",
    "V100 16GB": "V100 SXM2 16GB",
    "V100 32GB": "V100 SXM2 32GB",
    "T4": "T4",
}
ROOT = "PyTorch/Classification/ConvNets"


def git(repo: Path, *command: str) -> str:
    """Return what a git command prints in `repo`."""
    return subprocess.run(
        ["git", "-C", str(repo), *command], check=True, capture_output=True, text=True
    ).stdout


def _dotted(found: re.Match[str]) -> str:
    return ".".join(group for group in found.groups() if group)  # 112 is 1.12, and 240 is 2.4.0


def timm_rows(repo: Path) -> Iterator[dict[str, object]]:
    """Give one row for each model in each benchmark file of pytorch-image-models."""
    for name in git(repo, "ls-tree", "--name-only", "HEAD:results").split():
        found = TIMM_NAME.fullmatch(name)
        if found is None or found["torch"] in OLDER:
            continue
        kind = found["mode"]
        common = {
            "source": "pytorch-image-models",
            "file": name,
            "device": DEVICES[found["device"]],
            "count": 1,
            "precision": "fp16" if found["precision"] == "amp" else "fp32",
            "compiled": int(bool(found["compiled"])),
            "training": int(kind == "train"),
            "torch": re.sub(r"^(1)(\d\d)$|^(\d)(\d)(\d)$", _dotted, found["torch"]),
        }
        for row in csv.DictReader(io.StringIO(git(repo, "show", f"HEAD:results/{name}"))):
            yield common | {
                "model": row["model"],
                "image": row[f"{kind}_img_size"],
                "batch": row[f"{kind}_batch_size"],
                "samples_per_s": row[f"{kind}_samples_per_sec"],
                "gmacs": row.get("infer_gmacs", ""),
            }


def nvidia_rows(repo: Path) -> Iterator[dict[str, object]]:
    """Give one row for each speed in NVIDIA's tables: inference by batch size, and training on 1
    and more GPUs.
    """
    for folder in ("resnet50v1.5", "resnext101-32x4d", "se-resnext101-32x4d", "efficientnet"):
        name, card, part, header = f"{ROOT}/{folder}/README.md", "", "", []
        for line in git(repo, "show", f"HEAD:{name}").splitlines():
            if line.startswith("#"):
                part = line.strip("# ") if not line.startswith("######") else part
                card = next((value for key, value in CARDS.items() if key in part), "")
                precision = line.strip("# ").split()[0] if line.startswith("######") else ""
                header = []
            elif line.startswith("|") and "performance:" in part and card:
                cells = [cell.strip().strip("*") for cell in line.strip("|").split("|")]
                if not header:
                    header = cells
                elif set(line) - set("|:- ") and "QAT" not in part:
                    found = dict(zip(header, cells, strict=True)) | {
                        "network": folder,
                        "precision": precision,
                    }
                    yield from _nvidia_row(found, card, name)


def _nvidia_row(found: dict[str, str], card: str, name: str) -> Iterator[dict[str, object]]:
    key = found.get("Model", found["network"])
    if key not in NETWORKS:
        return
    model, image = NETWORKS[key]
    common = {
        "source": "DeepLearningExamples",
        "file": name,
        "device": card,
        "model": model,
        "image": image,
    }
    common |= {"compiled": 0, "torch": "1.9.0a0"}
    if "Batch Size" in found:
        precision = {"Mixed": "fp16", "TF32": "tf32", "FP32": "fp32"}[found["precision"]]
        speed = int(found["Batch Size"]) / float(found["Latency Avg"].split()[0]) * 1e3
        yield common | {
            "count": 1,
            "batch": found["Batch Size"],
            "precision": precision,
            "training": 0,
            "samples_per_s": f"{speed:.1f}",
        }
        return
    batches = next(value for start, value in BATCHES[model].items() if card.startswith(start))
    for column, cell in found.items():
        label = column.removeprefix("Throughput - ")
        if "img/s" in cell and label in ("TF32", "FP32", "mixed precision"):
            precision = "fp16" if label == "mixed precision" else label.lower()
            batch = batches[0 if precision == "fp16" else 1]
            yield common | {
                "count": found["GPUs"],
                "batch": batch,
                "precision": precision,
                "training": 1,
                "samples_per_s": cell.split()[0],
            }


def main() -> None:
    """Write the table of the two checkouts that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("timm", type=Path, help="checkout of huggingface/pytorch-image-models")
    parser.add_argument("nvidia", type=Path, help="checkout of NVIDIA/DeepLearningExamples")
    parser.add_argument(
        "table", type=Path, help="where to write the table, such as published.csv.gz"
    )
    asked = parser.parse_args()
    rows = [*timm_rows(asked.timm), *nvidia_rows(asked.nvidia)]
    sources = {
        "pytorch-image-models": (asked.timm, "huggingface/pytorch-image-models", "Apache-2.0"),
        "DeepLearningExamples": (asked.nvidia, "NVIDIA/DeepLearningExamples", "BSD-3-Clause"),
    }
    about = {}
    for name, (repo, address, licence) in sources.items():
        commit, date = git(repo, "log", "-1", "--format=%H %cs").split()
        about[name] = {
            "address": f"https://github.com/{address}",
            "commit": commit,
            "date": date,
            "licence": licence,
        }
    text = io.StringIO()
    text.write(f"# {json.dumps(about)}\n")
    writer = csv.DictWriter(text, FIELDS.split(), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    asked.table.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    print(f"{asked.table}: {len(rows)} rows, {asked.table.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
