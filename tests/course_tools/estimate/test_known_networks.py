"""Networks that were counted beforehand, against their modules."""

import pytest
import torch
from course_lessons.data.models import ResNet50

from course_tools.estimate import estimate
from course_tools.estimate.counting.work import Sums, Work
from course_tools.estimate.known_networks import (
    ALIKE,
    CountedMemory,
    Network,
    counted_name,
    counted_names,
)
from course_tools.estimate.memory.memory_model import MemoryLine
from course_tools.estimate.time.error_factor import kind_of

TYPED = {
    "ResNet-50": "resnet50",
    "microsoft/resnet-50": "resnet50",
    "timm/resnet50.a1_in1k": "resnet50",
    "google/vit-base-patch16-224": "vit_base_patch16_224",
    "vit_b_16": "vit_base_patch16_224",
    "efficientnet-b0": "efficientnet_b0",
    "facebook/convnext-tiny-224": "convnext_tiny",
    "mobilenet_v2": "mobilenetv2_100",
    "resnet51": None,
    "yolov8n": None,
}


@pytest.mark.parametrize("typed", TYPED)
def test_a_network_is_found_by_what_people_type(typed):
    assert counted_name(typed) == TYPED[typed] and set(ALIKE.values()) <= counted_names()


PHOTOGRAPH = torch.empty(1, 3, 224, 224, device="meta")


@pytest.mark.parametrize("asked", [{"count": 2}, {"training": False}], ids=str)
def test_a_name_has_the_time_and_the_memory_of_its_module(asked):
    by_name = estimate("resnet50", PHOTOGRAPH, batch=96, devices=["T4"], **asked).rows[0]
    by_module = estimate(ResNet50(), PHOTOGRAPH, batch=96, devices=["T4"], **asked).rows[0]
    assert by_name.step_s == pytest.approx(by_module.step_s, rel=0.03)
    assert by_name.needed_bytes == pytest.approx(by_module.needed_bytes, rel=0.06)


@pytest.mark.parametrize("size", [(448, 224), (224, 448)], ids=str)
def test_a_name_is_answered_for_images_of_the_size_that_was_asked(size):
    images = torch.empty(1, 3, *size, device="meta")
    by_name = estimate("resnet50", (images,), batch=96, devices=["T4"])
    by_module = estimate(ResNet50(), images, batch=96, devices=["T4"])
    assert by_name["T4"].step_s == pytest.approx(by_module["T4"].step_s, rel=0.03)
    needed = [one["T4"].needed_bytes for one in (by_name, by_module)]
    assert needed[0] == pytest.approx(needed[1], rel=0.06)
    assert f"scaled to {size[0]} x {size[1]}" in by_name.demand.work.assumed[0]


def test_a_network_without_counted_memory_says_that_it_is_not_known():
    found = estimate("caformer_s18", PHOTOGRAPH, batch=8, devices=["T4"], training=False)
    assert found.rows[0].fits is None and "not known" in repr(found)
    assert found.to_dict()["memory"]["lines"] == []


def test_a_name_knows_its_depthwise_convolutions():
    found = estimate("mobilenetv2_100", torch.empty(1, 3, 224, 224), batch=64, devices=["A100"])
    assert kind_of(found.demand.work) == "depthwise convolutions"
    assert 0 < found.demand.work.depthwise.flops < 0.2 * found.demand.work.flops


@pytest.mark.parametrize(
    ("name", "asked", "hint"),
    [
        ("resnet51", {}, "resnet50"),
        ("vit_base_patch16_224", {"inputs": torch.empty(1, 3, 448, 224)}, "224 x 224"),
        ("resnet50d", {"inputs": torch.empty(3, 224, 224)}, "3, height, width"),
        ("resnet50", {"inputs": torch.empty(1, 224, 224, 3)}, "3 channels"),
        ("resnet50d", {"inputs": (PHOTOGRAPH, PHOTOGRAPH)}, "one tensor of images"),
        ("resnet50d", {"precision": "fp32"}, "16 bits"),
        ("resnet50d", {"shards": 8, "count": 8}, "shards="),
        ("resnet50d", {"channels_last": True}, "not counted with channels_last=. Pass the model"),
        ("resnet50d", {"loss": torch.sum}, "not counted with a loss=. Pass the model"),
        ("resnet50d", {"optimizer": "sgd"}, "adam"),
    ],
)
def test_what_was_not_counted_is_said_in_a_sentence(name, asked, hint):
    with pytest.raises(ValueError, match=hint):
        estimate(name, **{"inputs": PHOTOGRAPH, "devices": ["T4"]} | asked)


@pytest.mark.parametrize(("training", "update", "kernels"), [(True, 28 * 5, 4), (False, 0, 3)])
def test_a_counted_step_grows_with_its_samples_and_pixels_and_has_one_update(
    training, update, kernels
):
    sums = {"convolution": Sums(100.0, 10.0, 7), "other": Sums(30.0, 20.0, 3)}
    work = Work(2, 9, training, "fp16", **sums, unaligned=6.0)
    found = Network(work, trained=5).at(4, "bf16", pixels=3)  # twice the samples
    assert (found.batch, found.precision, found.unaligned) == (4, "bf16", 36)
    assert found.convolution == Sums(600, 60, 7)
    assert found.other == Sums(180, 120 + update, kernels)


def test_under_ddp_the_gradients_are_there_a_second_time_in_four_bytes():
    memory = CountedMemory(8, (MemoryLine(100.0, 2.0),), trained=25)
    assert memory.under_ddp().lines == (MemoryLine(200.0, 2.0),)
    assert memory.needed_bytes == pytest.approx(116 * 1.055 + 1.2e9)
