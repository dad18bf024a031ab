"""The pictures of the multi-GPU lesson."""

import io

import pytest
from course_lessons.multi_gpu.pictures import (
    draw_published_scaling,
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


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_a_piece_is_whole_after_all_ranks_but_one_have_sent_it_and_everywhere_after_as_many(ranks):
    assert follow_piece(0, ranks) == [1] * ranks
    assert follow_piece(ranks - 1, ranks) == list(range(1, ranks + 1))
    assert follow_piece(2 * ranks - 3, ranks).count(ranks) == ranks - 1
    assert follow_piece(2 * (ranks - 1), ranks) == [ranks] * ranks
