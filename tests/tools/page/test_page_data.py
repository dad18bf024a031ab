"""What the page is given: the package's own figures, each in its place and unit."""

import inspect
import json
import re
from dataclasses import replace

import pytest

from course_tools.estimate import estimate_finetuning
from course_tools.estimate.chips import DEVICES, all_chips, find_chip, find_link
from course_tools.estimate.counting.work import OP_KINDS, Sums, Work
from course_tools.estimate.language.language_model import language_models
from tools.page.build import HERE, joined_modules
from tools.page.page_data import _provider, page_data, short, step_text


@pytest.fixture(scope="module")
def data():
    return page_data()


def test_numbers_are_short_text_and_zero_is_nothing():
    assert short(1234.56, 0, 0.5, 2.5e9, 1.23456e12, 7) == "1235,,0.5,2.5e9,1.235e12,7"


@pytest.mark.parametrize("training", [True, False])
def test_the_sums_of_a_step_are_kept_by_what_limits_them(training):
    sums = {kind: Sums(10.0**k, 2 * 10.0**k, 1) for k, kind in enumerate(OP_KINDS)}
    work = Work(batch=8, parameters=5, training=training, precision="fp16", **sums)
    flops = {kind: each.flops for kind, each in sums.items()}
    images = flops["convolution"] + flops["depthwise"]
    others = sum(flops.values()) - images - flops["convolution3d"]
    expected = [8, images, 2 * images, 2 * flops["depthwise"], flops["attention"]]
    expected += [flops["recurrent"], others, 2 * others, len(OP_KINDS), flops["depthwise"]]
    expected += [flops["convolution3d"], 2 * flops["convolution3d"], 0]
    expected += [5, 3] if training else []
    found = [float(each or 0) for each in step_text(work, 3).split(",")]
    assert found == pytest.approx(expected, rel=1e-3)
    for share, kept in ((4e-4, False), (6e-4, True)):  # of a two-thousandth on
        text = step_text(replace(work, unaligned=share * work.flops), 3)
        assert bool(text.split(",")[12]) == kept


def test_each_chip_has_the_figures_of_its_data_sheet(data):
    found = {chip["name"]: chip for chip in data["chips"]}
    assert list(found) == [chip.name for chip in all_chips()]
    usual = (HERE / "question.js").read_text(encoding="utf-8")
    assert f"devices: {json.dumps(DEVICES)}," in usual  # both ask about the same cards
    for name, shown in found.items():
        chip = find_chip(name)
        assert shown["bandwidth"] == chip.bandwidth_gb_per_s and shown["peaks"] == chip.peaks
        assert shown["sold"] == chip.memory_gb and shown["family"] == chip.family
        assert shown.get("corrected", 0) == chip.corrected
        assert shown["link"] == (find_link(chip.link).gb_per_s if chip.link else None)
        assert shown.get("throughHost", 0) == ("through the host" in chip.link)
        assert shown.get("lowPower", 0) == (chip.watts is not None and chip.watts <= 75), name


def test_the_page_knows_each_limit_by_its_name(data):
    used = set(re.findall(r"\bLIMITS\.(\w+)", joined_modules()))
    assert used == set(data["limits"])  # a name that is not there would be undefined in a browser


def test_a_price_is_as_old_as_the_newest_of_its_provider():
    old = {"provider": "A", "usd_per_hour": {"T4": 0.5, "A100": 1}, "date": "2026-01-02"}
    new = {"provider": "A", "usd_per_hour": {"L4": 0.5}, "date": "2026-03-01"}
    lists = [one | {"kind": "in homes"} for one in (old, new, old | {"provider": "B"})]
    found = _provider({"name": "A", "what": "by the second"}, lists)
    assert found["date"] == "2026-03-01" and found["prices"].keys() == {"T4", "L4", "A100"}


def test_the_parts_of_a_language_models_shape_add_up_to_its_weights(data):
    rank = inspect.signature(estimate_finetuning).parameters["rank"].default
    for name, model in language_models().items():
        shape = data["models"][name]["shape"]
        layer = shape["attention"] + shape["experts"] * shape["expert"]
        assert shape["layers"] * layer + shape["rest"] == model.parameters
        used = shape["attention"] + shape["used"] * shape["expert"]
        assert shape["layers"] * used == model.linear_used
        matrices = 3 if shape["gated"] else 2  # as wide as the text and as what lies between
        assert matrices * shape["hidden"] * shape["between"] == shape["used"] * shape["expert"]
        assert shape["adapters"] == model.adapters(rank, model.shapes)
        usual = {"tuning": "full", "batch": 16} if model.encoder else None
        assert data["models"][name].get("usual") == usual


def test_what_was_counted_in_16_bits_and_not_compiled_is_on_the_page(data):
    assert not any(one["compiled"] for one in data["evidence"]) and data["evidence"]
    steps = data["models"]["resnet50 (224)"]["steps"]
    batch, flops = (float(each) for each in steps["inference"].split(",")[:2])
    assert flops / batch == pytest.approx(2 * 4.1e9, rel=0.02)  # 4.1 GMACs, as timm says
