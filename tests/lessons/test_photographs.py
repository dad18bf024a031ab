import pytest
import torch
from torch.utils.data import DataLoader

from course_utils.lessons.gpu import SIDE, Photographs


def test_a_batch_holds_small_pixels_and_who_decoded_it_when():
    pixels, (who, start, end) = Photographs(batches=2, batch=3, size=(160, 80))[1]
    assert pixels.shape == (3, 3, SIDE, SIDE) and pixels.dtype == torch.uint8
    assert who == "loading" and start < end
    assert pixels.float().std() > 10  # a photograph, and not one colour


def test_every_number_outside_is_refused_so_that_a_loop_ends():
    photographs = Photographs(batches=2, batch=1, size=(64, 64))
    assert len(list(photographs)) == len(photographs) == 2
    with pytest.raises(IndexError, match="there are 2 batches, counted from 0, but number 2"):
        photographs[2]


@pytest.mark.process
def test_workers_say_who_they_are():
    loader = DataLoader(Photographs(batches=2, batch=1, size=(64, 64)), batch_size=None, num_workers=2)
    assert {who for _, (who, _, _) in loader} == {"worker 0", "worker 1"}
