"""Intervals and bounds against the published measurements, where their table is (tools/published_measurements.py)."""

import random

import pytest
import torch

from course_utils.estimate.chips import find_chip
from course_utils.estimate.counting import count_work
from course_utils.estimate.evidence import evidence
from course_utils.estimate.published import DATA, published, sources
from course_utils.estimate.steptime import fitted, step_time

timm = pytest.importorskip("timm")
needs_table = pytest.mark.skipif(not DATA.exists(), reason="the table is made by tools/published_measurements.py")
PLAIN = {"source": "pytorch-image-models", "compiled": 0, "precision": "fp16"}


def compare(row):
    """Return estimated / measured, and the factor that the estimate claims."""
    with torch.device("meta"):
        model = timm.create_model(row["model"])
    image = torch.empty(1, 3, int(row["image"]), int(row["image"]))
    work = count_work(
        model, image, batch=int(row["batch"]), precision=row["precision"], training=row["training"] == "1"
    )
    chip = find_chip(row["device"])
    time = step_time(work, chip)
    return time.total_s * float(row["samples_per_s"]) / int(row["batch"]), evidence(work, chip, time).factor


def covered(rows):
    pairs = [compare(row) for row in rows]
    return sum(1 / factor <= ratio <= factor for ratio, factor in pairs) / len(pairs)


@needs_table
@pytest.mark.parametrize("device", ["RTX 4090", "RTX 5090", "RTX PRO 6000 Max-Q"])
def test_the_interval_covers_held_out_cards_as_often_as_it_says(device):
    rows = [row for row in published(**PLAIN, device=device, training=0) if int(row["image"]) <= 256]
    # Of 12 rows nine in ten are 10.8; fewer than 8 have a chance of 4 in 1,000.
    assert covered(random.Random(7).sample(rows, 12)) >= 8 / 12


@needs_table
@pytest.mark.parametrize("device", ["T4", "V100 SXM2 16GB"])
def test_every_published_batch_of_resnet50_is_within_one_and_a_half(device):
    for row in published(device=device, model="resnet50", training=0):
        assert 1 / 1.5 < compare(row)[0] < 1.5, row


@needs_table
def test_each_source_names_commit_date_and_licence():
    assert {"commit", "date", "licence", "address"} <= set(sources()["pytorch-image-models"])
    assert len(published()) > 15_000 and DATA.stat().st_size < 400_000


def test_without_the_table_the_error_says_how_to_make_it(monkeypatch, tmp_path):
    from course_utils.estimate import published as module

    monkeypatch.setattr(module, "DATA", tmp_path / "none.csv.gz")
    module._table.cache_clear()
    with pytest.raises(FileNotFoundError, match=r"tools/published_measurements\.py"):
        module.published()
    module._table.cache_clear()


def test_each_fitted_number_and_each_factor_says_where_it_comes_from():
    known = fitted()
    assert all(entry["value"] > 0 and entry["fitted_on"] for entry in known["numbers"].values())
    assert all(entry["factor"] > 1 and entry["about"] for entry in known["factors"].values())
