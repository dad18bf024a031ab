"""The pictures of the multi-GPU lesson."""

import io

import numpy as np
from course_lessons.multi_gpu.pictures import draw_all_reduce, draw_gains
from PIL import Image

GAINS = {"small": {"1 core": 1.0, "2 ranks": 0.5}, "large": {"1 core": 1.0, "2 ranks": 3.25}}


def test_the_picture_says_every_number_in_words_and_has_the_size_of_a_lecture_hall():
    shown = draw_gains(GAINS, "A title")
    for words in ("relative to 1 core", "small model, 2 ranks: 0.50", "large model, 2 ranks: 3.25"):
        assert words in shown.alt
    assert Image.open(io.BytesIO(shown.png)).size == (1280, 720)


def test_a_higher_bar_covers_more_of_the_picture():
    def blue(gains):
        pixels = np.asarray(
            Image.open(io.BytesIO(draw_gains(gains, "A title").png)).convert("RGB"), dtype=int
        )
        return (pixels[..., 2] > pixels[..., 0] + 60).sum()

    assert blue(GAINS) < blue({**GAINS, "small": {"1 core": 1.0, "2 ranks": 3.0}})


def test_the_all_reduce_is_drawn_with_every_number_in_words():
    shown = draw_all_reduce([[1.0, -2.0], [3.0, 0.5]], [2.0, -0.75])
    for words in (
        "rank 0, its samples: 1.00, -2.00",
        "rank 1, its samples: 3.00, 0.50",
        "every rank: 2.00, -0.75",
    ):
        assert words in shown.alt
    assert Image.open(io.BytesIO(shown.png)).size == (1280, 720)
