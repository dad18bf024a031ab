"""The pictures of the multi-GPU lesson."""

import io

import pytest
from course_lessons.multi_gpu.pictures import (
    MOMENTS,
    draw_ddp,
    draw_published_scaling,
    draw_ring,
    follow_piece,
)
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


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_a_piece_is_whole_after_all_ranks_but_one_have_sent_it_and_everywhere_after_as_many(ranks):
    assert follow_piece(0, ranks) == [1] * ranks
    assert follow_piece(ranks - 1, ranks) == list(range(1, ranks + 1))
    assert follow_piece(2 * ranks - 3, ranks).count(ranks) == ranks - 1
    assert follow_piece(2 * (ranks - 1), ranks) == [ranks] * ranks


def test_the_ring_shows_four_moments_and_says_them_in_words():
    shown = draw_ring()
    assert len(MOMENTS) == 4 and size(shown) == (1280, 720)
    assert "one whole sum: 1, 2, 3, 4" in shown.alt and "all have it: 4, 4, 4, 4" in shown.alt
