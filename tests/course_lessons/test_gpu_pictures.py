import io
import json

import matplotlib.pyplot as plt
import pytest
import torch
from course_lessons import gpu
from course_lessons.gpu import pictures
from course_lessons.gpu.pictures import draw_batches, draw_copies, draw_lanes, draw_losses
from PIL import Image
from stand_ins import REPOSITORY

from course_utils.compare import results
from course_utils.compare.measurement import Measurement
from course_utils.compare.results import Result
from course_utils.copy_speed import Copy, CopyRate


def copies(*directions):
    sizes = (2**10, 2**20, 2**26)
    return CopyRate(
        "cuda:0",
        tuple(Copy(d, p, size, 1e-5 + size / 1e10) for d, p in directions for size in sizes),
    )


PICTURES = {
    "lanes": lambda: draw_lanes(2, 16, "A GPU", 132, 128),
    "copies": lambda: draw_copies(
        copies(("to the device", True), ("from the device", False)), "cuda"
    ),
    "losses": lambda: draw_losses(
        "Losses", {"float32": [2.0] * 10, "float16": [2.0] * 5 + [1.0] * 5}
    ),
    "batches": lambda: draw_batches(
        [(1, 4.0), (2, 5.0)], "This CPU", "cpu", {"T4": [(1, 94)], "V100": [(1, 96), (2, 195)]}
    ),
}
WORDS = {
    "lanes": "On the left 32 dots for the lanes of this CPU, 16 in each of its 2 cores. On the "
    "right 16,896 dots",
    "copies": "to the device, pinned: at least 10.1 µs each, and 9.99 GB/s for 67,108,864 bytes",
    "losses": "float32 at 2.000, float16 at 1.000",
    "batches": "This CPU, now: 5 at 2; T4: 94 at 1; V100: 195 at 2.",
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_says_in_words_what_it_shows(name):
    assert WORDS[name] in PICTURES[name]().alt


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_opaque_on_white_and_of_lecture_size(name):
    image = Image.open(io.BytesIO(PICTURES[name]().png)).convert("RGBA")
    assert image.size == (1280, 720)
    assert image.getextrema()[3] == (255, 255) and image.getpixel((2, 716)) == (255, 255, 255, 255)


def test_a_picture_of_copies_says_how_many_are_unreliable(monkeypatch):
    shown = []
    monkeypatch.setattr(
        pictures, "picture", lambda axes, alt, colors: shown.extend([alt, *axes.texts])
    )
    draw_copies(
        CopyRate(
            "cpu",
            (Copy("in memory", False, 1024, 1e-6), Copy("in memory", False, 2048, 1, ("No.",))),
        ),
        "cpu",
    )
    assert shown[0].endswith("unreliable: 1 of 2 figures. First: 'No.'.")
    assert "1 of 2 points not to be trusted" in [text.get_text() for text in shown[1:]]


def test_the_lanes_are_drawn_one_dot_each():
    # Each dot covers some pixels, so many more lanes leave far more colour.
    def orange(picture):
        counts = Image.open(io.BytesIO(picture.png)).convert("RGB").getcolors(1 << 20)
        return sum(count for count, (red, _, blue) in counts if red > 150 and blue < 120)

    assert orange(draw_lanes(2, 16, "A GPU", 132, 128)) > 5 * orange(
        draw_lanes(2, 16, "A GPU", 10, 64)
    )


def test_a_recording_of_a_card_joins_those_that_were_published(monkeypatch):
    work = ("ResNet-50 forward", "fp32")
    sizes = {1: 2e-3, 64: 2e-2}
    found = (
        Measurement(*work, k, "batch", "samples", k, "cuda:0", "cuda", "NVIDIA X", 8, s)
        for k, s in sizes.items()
    )
    monkeypatch.setattr(results, "recorded", lambda: {"x": Result(tuple(found))})
    words = draw_batches([(1, 4.0), (2, 5.0)], "This CPU", "cpu", {"T4": [(1, 94)]}).alt
    assert "T4: 94 at 1; NVIDIA X, measured: 3.2k at 64." in words


@pytest.mark.parametrize("cores", [2, 8, 64, 224])
def test_a_cpu_of_many_cores_stays_beside_the_gpu(cores, monkeypatch):
    monkeypatch.setattr(pictures, "picture", lambda axes, alt, **_: axes)
    axes = pictures.draw_lanes(cores, 16, "NVIDIA T4", 40, 64)
    boxes = [patch.get_bbox() for patch in axes.patches]
    assert (
        len(boxes) == cores + 40
        and max(box.x1 for box in boxes[:cores]) <= 3
        and min(box.y0 for box in boxes) >= 0
    )
    assert min(box.x0 for box in boxes[cores:]) >= 4
    # Dots are equally dense everywhere: a multiprocessor of 64 lanes has four times the area of a
    # core of 16.
    assert boxes[-1].width * boxes[-1].height == pytest.approx(4 * boxes[0].width * boxes[0].height)
    plt.close(axes.figure)


# pytorch/pytorch, aten/src/ATen/Version.cpp: what an Arm CPU reports, such as Graviton 3; a float32
# number has 32 bits.
@pytest.mark.parametrize(
    ("capability", "lanes"), [("AVX512", 16), ("AVX2", 8), ("SVE256", 8), ("DEFAULT", 4)]
)
def test_the_lesson_knows_how_many_numbers_a_register_of_each_processor_holds(
    capability, lanes, monkeypatch
):
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: capability)
    cells = json.loads((REPOSITORY / "notebooks" / "02_gpu.ipynb").read_text(encoding="utf-8"))[
        "cells"
    ]
    names = {"torch": torch, "gpu": gpu}
    exec(next("".join(cell["source"]) for cell in cells if cell["id"] == "02-42"), names)
    assert names["lanes"] == lanes
