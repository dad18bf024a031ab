import pytest
import torch
from course_lessons.gpu import BATCH, BATCHES, SIDE, Photographs
from torch.utils.data import DataLoader


def test_a_batch_holds_small_pixels_and_who_decoded_it_when():
    pixels, (who, start, end) = Photographs()[1]
    assert pixels.shape == (BATCH, 3, SIDE, SIDE) and pixels.dtype == torch.uint8
    assert who == "loading" and start < end
    assert pixels.float().std() > 10  # a photograph, and not one colour


def test_every_number_outside_is_refused_so_that_a_loop_ends():
    photographs = Photographs()
    assert len(list(photographs)) == len(photographs) == BATCHES
    with pytest.raises(
        IndexError, match=f"there are {BATCHES} batches, counted from 0, but number {BATCHES}"
    ):
        photographs[BATCHES]


@pytest.mark.process
def test_workers_say_who_they_are():
    loader = DataLoader(Photographs(), batch_size=None, num_workers=2)
    assert {who for _, (who, _, _) in loader} == {"worker 0", "worker 1"}
