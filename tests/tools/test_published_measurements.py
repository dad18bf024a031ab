"""The table of published speeds, made of two small repositories in the form of the real ones."""

import csv
import gzip
import io
import json
import subprocess
import sys

import pytest
from course_lessons.evidence.published import TABLE

from tools import published_measurements

TIMM = """\
model,{kind}_samples_per_sec,{kind}_batch_size,{kind}_img_size,infer_gmacs,infer_macts
resnet50,1234.5,256,224,4.1,11.1
"""
# Speeds as NVIDIA prints them: batch 8 in 20 ms are 400 images a second; two cells are of no card
# or of no precision that the table keeps.
NVIDIA = """\
## Training performance: NVIDIA A100 80GB (8x A100)
|**GPUs**|**Throughput - TF32**|**Throughput - mixed precision**|**Speed-up**|
|:---:|:---:|:---:|:---:|
|1|938 img/s|2470 img/s|2.6x|
|8|7248 img/s|16621 img/s|2.3x|
## Training performance: NVIDIA V100 16GB
|**GPUs**|**Throughput - FP32**|**Throughput - mixed precision**|
|:---:|:---:|:---:|
|1|375 img/s|1223 img/s|
## Inference performance: NVIDIA T4
###### FP32 Inference Latency
|**Batch Size**|**Throughput Avg**|**Latency Avg**|
|---|---|---|
|8|395 img/s|20.00 ms|
## Inference performance: NVIDIA K80
###### FP32 Inference Latency
|**Batch Size**|**Throughput Avg**|**Latency Avg**|
|8|1 img/s|1.00 ms|
"""


def repository(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    person = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    day = ("--date", "2024-05-06T12:00:00Z")
    for command in (("init", "-q"), ("add", "."), (*person, "commit", "-qm", "speeds", *day)):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


def test_the_table_has_the_figures_of_both_repositories_in_their_units(tmp_path, monkeypatch):
    names = {
        "benchmark-infer-amp-nchw-pt240-cu124-4090-dynamo.csv": TIMM.format(kind="infer"),
        "benchmark-train-fp32-nchw-pt112-cu113-rtx3090.csv": TIMM.format(kind="train"),
        "benchmark-infer-amp-nchw-pt210-cu121-rtx3090.csv": TIMM.format(kind="infer"),  # older
        "other.csv": "",
    }
    (tmp_path / "timm").mkdir()
    repository(tmp_path / "timm", **{f"results__{name}": text for name, text in names.items()})
    folders = ("resnet50v1.5", "resnext101-32x4d", "se-resnext101-32x4d", "efficientnet")
    readmes = {f"{published_measurements.ROOT}/{each}/README.md": "" for each in folders}
    readmes[f"{published_measurements.ROOT}/resnet50v1.5/README.md"] = NVIDIA
    (tmp_path / "nvidia").mkdir()
    repository(tmp_path / "nvidia", **readmes)
    words = ["x", *(str(tmp_path / name) for name in ("timm", "nvidia", "table.gz"))]
    monkeypatch.setattr(sys, "argv", words)
    published_measurements.main()
    first, table = gzip.decompress((tmp_path / "table.gz").read_bytes()).decode().split("\n", 1)
    about = json.loads(first.removeprefix("# "))
    assert {one["licence"] for one in about.values()} == {"Apache-2.0", "BSD-3-Clause"}
    assert all(len(one["commit"]) == 40 and len(one["date"]) == 10 for one in about.values())
    fields = [
        "device",
        "count",
        "batch",
        "precision",
        "compiled",
        "training",
        "torch",
        "image",
        "samples_per_s",
    ]
    rows = [[row[name] for name in fields] for row in csv.DictReader(io.StringIO(table))]
    nvidia = "1.9.0a0", "224"
    assert rows == [
        ["RTX 4090", "1", "256", "fp16", "1", "0", "2.4.0", "224", "1234.5"],
        ["RTX 3090", "1", "256", "fp32", "0", "1", "1.12", "224", "1234.5"],
        ["A100 80GB", "1", "256", "tf32", "0", "1", *nvidia, "938"],
        ["A100 80GB", "1", "256", "fp16", "0", "1", *nvidia, "2470"],
        ["A100 80GB", "8", "256", "tf32", "0", "1", *nvidia, "7248"],
        ["A100 80GB", "8", "256", "fp16", "0", "1", *nvidia, "16621"],
        ["V100 SXM2 16GB", "1", "112", "fp32", "0", "1", *nvidia, "375"],
        ["V100 SXM2 16GB", "1", "256", "fp16", "0", "1", *nvidia, "1223"],
        ["T4", "1", "8", "fp32", "0", "0", *nvidia, "400.0"],
    ]
    with pytest.raises(subprocess.CalledProcessError):
        published_measurements.git(tmp_path, "log")


def test_each_row_of_the_table_in_the_course_is_what_its_source_is_read_as():
    lines = gzip.decompress(TABLE.read_bytes()).decode().splitlines()[1:]
    rows = list(csv.DictReader(lines))
    for name, device in {(row["file"], row["device"]) for row in rows}:
        if found := published_measurements.TIMM_NAME.fullmatch(name):
            assert published_measurements.DEVICES[found["device"]] == device
    known = dict(published_measurements.NETWORKS.values())
    read, places = set(), {"fp16": 0, "tf32": 1, "fp32": 1}
    for row in (row for row in rows if row["source"] == "DeepLearningExamples"):
        assert known[row["model"]] == int(row["image"])
        if row["training"] == "1":
            batches = published_measurements.BATCHES[row["model"]]
            (both,) = (both for card, both in batches.items() if row["device"].startswith(card))
            assert both[places[row["precision"]]] == int(row["batch"])
            read |= {(row["model"], *both)}
    batches = published_measurements.BATCHES.values()
    assert len(read) == sum(len(set(each.values())) for each in batches)


def test_its_help_begins_with_what_it_does(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["x", "--help"])
    with pytest.raises(SystemExit):
        published_measurements.main()
    assert "Collect published speeds" in capsys.readouterr().out
