"""The pictures of the multi-GPU lesson."""

import io

from course_lessons.multi_gpu.pictures import draw_ddp, draw_published_scaling, draw_ring
from PIL import Image


def size(picture):
    return Image.open(io.BytesIO(picture.png)).size


def test_the_published_scaling_says_its_speeds_in_words():
    shown = draw_published_scaling()
    assert "938 images/s -> 7,248 images/s, 7.7 times" in shown.alt
    assert "2,470 images/s -> 16,621 images/s, 6.7 times" in shown.alt
    assert size(shown) == (1280, 720)


def test_the_step_of_ddp_is_told_in_words_and_has_the_size_of_a_lecture_hall():
    shown = draw_ddp()
    assert "an all-reduce takes the mean" in shown.alt and size(shown) == (1280, 720)


def test_each_rank_of_a_ring_sends_twice_the_share_of_the_others():
    assert "Sent by each rank: 6/4 of the gradients" in draw_ring(4).alt
    assert "Sent by each rank: 14/8 of the gradients" in draw_ring(8).alt
