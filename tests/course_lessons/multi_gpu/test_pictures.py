"""The pictures of the multi-GPU lesson."""

import io

import numpy as np
import pytest
import torch
from course_lessons.multi_gpu.pictures import (
    CALCULATES_MS,
    COLORS,
    EXCHANGES_MS,
    draw_collectives,
    draw_published_scaling,
    draw_step,
    sums_of,
)
from matplotlib.colors import to_hex
from PIL import Image

from course_tools.figures import ORANGE


def size(picture):
    return Image.open(io.BytesIO(picture.png)).size


def test_the_published_scaling_says_its_speeds_in_words(drawn):
    shown = draw_published_scaling()
    title = drawn[0].get_title("left")
    assert title == "Eight GPUs train 6.7 to 7.7 times as fast"
    assert "938 images/s -> 7,248 images/s, 7.7 times" in shown.alt
    assert "2,470 images/s -> 16,621 images/s, 6.7 times" in shown.alt
    assert size(shown) == (1280, 720)
    lengths = [round(bar.get_width()) for bar in drawn[0].patches]  # dotted: eight times one
    assert lengths == [8 * 2470, 16621, 8 * 938, 7248]
    said = {text.get_position()[1]: text.get_text() for text in drawn[0].texts}
    assert said[0].startswith("16,621") and said[1].startswith("7,248")


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_the_two_halves_of_an_all_reduce_give_each_rank_one_sum_and_then_all(ranks):
    """As the documentation of NCCL defines them: rank k gets piece k, and then every piece."""
    scattered = torch.tensor(sums_of("reduce-scatter", ranks))
    assert torch.equal(scattered, ranks * torch.eye(ranks, dtype=torch.long))
    gathered = torch.tensor(sums_of("all-gather", ranks))
    assert torch.equal(gathered, scattered.sum(0).expand(ranks, ranks))


def test_what_is_a_sum_is_drawn_as_one(drawn):
    assert "each rank has the sum of one piece" in draw_collectives().alt
    pieces = [(*each.get_xy(), to_hex(each.get_facecolor())) for each in drawn[0].patches]
    pieces.sort(key=lambda piece: (piece[0] // 4.4, piece[0], -piece[1]))
    colors = [[color for *_, color in pieces[16 * k : 16 * k + 16]] for k in range(3)]
    own = [to_hex(color) for color in COLORS for _ in range(4)]
    orange, white = to_hex(ORANGE), "#ffffff"
    one_sum = [orange if rank == piece else white for rank in range(4) for piece in range(4)]
    assert colors == [own, one_sum, [orange] * 16]
    assert [text.get_text() for text in drawn[0].texts].count("sum") == 4 + 16


def test_the_recorded_step_shows_an_exchange_that_the_gpu_waits_for_and_one_that_it_does_not(drawn):
    def alone_ms(exchange):
        start, end = exchange
        computed = [min(end, b) - max(start, a) for a, b in CALCULATES_MS]
        return end - start - sum(max(0, each) for each in computed)

    assert alone_ms(EXCHANGES_MS[0]) > 8 and alone_ms(EXCHANGES_MS[-1]) == 0
    assert "11 ms" in draw_step().alt
    spans = [
        (path.vertices[:, 0].min(), path.vertices[:, 0].max(), path.vertices[:, 1].mean() > 0.5)
        for bars in drawn[0].collections
        for path in bars.get_paths()
    ]
    np.testing.assert_allclose([span[:2] for span in spans if span[2]], CALCULATES_MS)
    np.testing.assert_allclose(sorted(span[:2] for span in spans if not span[2]), EXCHANGES_MS)
