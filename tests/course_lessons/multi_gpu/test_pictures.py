"""The pictures of the multi-GPU lesson."""

import io

import pytest
import torch
from course_lessons.multi_gpu.pictures import (
    CALCULATES_MS,
    EXCHANGES_MS,
    draw_collectives,
    draw_published_scaling,
    draw_step,
    sums_of,
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
def test_the_two_halves_of_an_all_reduce_give_each_rank_one_sum_and_then_all(ranks):
    """As the documentation of NCCL defines them: rank k gets piece k, and then every piece."""
    scattered = torch.tensor(sums_of("reduce-scatter", ranks))
    assert torch.equal(scattered, ranks * torch.eye(ranks, dtype=torch.long))
    gathered = torch.tensor(sums_of("all-gather", ranks))
    assert torch.equal(gathered, scattered.sum(0).expand(ranks, ranks))
    assert "each rank has the sum of one piece" in draw_collectives().alt


def test_the_recorded_step_shows_an_exchange_that_the_gpu_waits_for_and_one_that_it_does_not():
    def alone_ms(exchange):
        start, end = exchange
        computed = [min(end, b) - max(start, a) for a, b in CALCULATES_MS]
        return end - start - sum(max(0, each) for each in computed)

    assert alone_ms(EXCHANGES_MS[0]) > 8 and alone_ms(EXCHANGES_MS[-1]) == 0
    assert "11 ms" in draw_step().alt
