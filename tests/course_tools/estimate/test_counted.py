"""Models by name: counted networks against the module, and language models in the terminal."""

import json

import pytest
import torch
from course_lessons.data.models import ResNet50

from course_tools.estimate import estimate
from course_tools.estimate.__main__ import build, main
from course_tools.estimate.counted import counted_names
from course_tools.estimate.finetuning import estimate_finetuning
from course_tools.estimate.inference import estimate_inference
from course_tools.estimate.time.error_factor import kind_of

PHOTOGRAPH = torch.empty(1, 3, 224, 224, device="meta")


@pytest.mark.parametrize("asked", [{}, {"count": 2}, {"training": False}], ids=str)
def test_a_name_has_the_time_and_the_memory_of_its_module(asked):
    by_name = estimate("resnet50", PHOTOGRAPH, batch=96, devices=["T4"], **asked).rows[0]
    by_module = estimate(ResNet50(), PHOTOGRAPH, batch=96, devices=["T4"], **asked).rows[0]
    assert by_name.step_s == pytest.approx(by_module.step_s, rel=0.03)
    assert by_name.needed_bytes == pytest.approx(by_module.needed_bytes, rel=0.06)


@pytest.mark.parametrize("size", [(448, 224), (224, 448), (512, 512)], ids=str)
def test_a_name_is_answered_for_images_of_the_size_that_was_asked(size):
    images = torch.empty(1, 3, *size, device="meta")
    by_name = estimate("resnet50", (images,), batch=96, devices=["T4"])
    by_module = estimate(ResNet50(), images, batch=96, devices=["T4"])
    assert by_name["T4"].step_s == pytest.approx(by_module["T4"].step_s, rel=0.03)
    assert by_name.memory.needed_bytes == pytest.approx(by_module.memory.needed_bytes, rel=0.06)
    assert f"scaled to {size[0]} x {size[1]}" in repr(by_name)


def test_a_network_without_counted_memory_says_that_it_is_not_known():
    found = estimate("caformer_s18", PHOTOGRAPH, batch=8, devices=["T4"], training=False)
    assert found.rows[0].fits is None and "not known" in repr(found)
    assert found.to_dict()["memory"]["lines"] == []


def test_the_terminal_takes_a_name_without_torchvision(capsys):
    assert build("resnet50d") == "resnet50d" and len(counted_names()) > 1000
    assert main(["resnet50d", "--devices", "T4", "--batch", "8"]) == 0
    assert "T4" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, hint",
    [
        (["resnet51"], "resnet50"),
        (["vit_base_patch16_224", "--input", "3", "448", "224"], "224 x 224"),
        (["resnet50d", "--input", "3", "100"], "(samples, channels, height, width)"),
        (["resnet50d", "--precision", "fp32"], "16 bits"),
        (["resnet50d", "--optimizer", "sgd"], "adam"),
        (["Llama 4"], "Llama 3.1 8B"),
        (["Llama 3.1 8B", "--deadline", "1"], "leave out --deadline"),
        (["Llama 3.1 8B", "--count", "4"], "leave out --count"),
        (["Llama 3.1 8B", "--this-machine", "3"], "leave out --this-machine"),
    ],
    ids=str,
)
def test_what_was_not_counted_is_said_in_a_sentence(words, hint, capsys):
    assert main([*words, "--devices", "T4"]) == 2
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize(
    "asked", [{"channels_last": True}, {"loss": torch.sum}], ids=["layout", "loss"]
)
def test_what_a_name_cannot_be_asked_is_refused(asked):
    with pytest.raises(ValueError, match=f"without {next(iter(asked))}=. Pass the model"):
        estimate("resnet50", torch.empty(1, 3, 224, 224), **asked)


def test_a_name_knows_its_depthwise_convolutions():
    found = estimate("mobilenetv2_100", torch.empty(1, 3, 224, 224), batch=64, devices=["A100"])
    assert kind_of(found.work) == "depthwise convolutions"
    assert 0 < found.work.depthwise.flops < 0.2 * found.work.flops


def test_the_terminal_reads_the_shape_of_a_language_model(tmp_path, capsys):
    shape = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12}
    shape |= {"num_attention_heads": 12, "vocab_size": 50257}
    (tmp_path / "config.json").write_text(json.dumps(shape))
    assert main([str(tmp_path / "config.json"), "--devices", "T4"]) == 0
    assert "it fits" in capsys.readouterr().out


def test_the_terminal_knows_a_language_model_however_it_is_written(capsys):
    tuned = ["llama-3.1-8b", "--devices", "T4", "L4", "--samples", "1000", "--price", "L4=1"]
    assert main(tuned) == 0
    dear = estimate_finetuning("Llama 3.1 8B", device="L4", tokens=2_048_000, price_per_hour=1)
    assert capsys.readouterr().out.endswith(f"\n\n{dear!r}\n")
    assert main(["Llama 3.1 8B", "--devices", "T4", "--inference", "--bits", "4"]) == 0
    assert capsys.readouterr().out == f"{estimate_inference('Llama 3.1 8B', 'T4', bits=4)!r}\n"
