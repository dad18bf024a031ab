"""What stands in for a value that counting does not have, and what is said of it."""

import torch

from course_tools.estimate.counting.values import PIXELS, Values


def test_a_box_is_one_pixel_wide_and_reaches_over_no_edge():
    values, floats = Values(), torch.zeros(3, 4)
    boxes = floats.long()
    values.note("_to_copy", (floats,), boxes)
    left = boxes.unbind(1)[0]
    values.note("unbind", (boxes,), (left,))
    wide, outside = left[0] + 1, left[0] > 3
    values.note("add", (left,), wide)
    values.note("gt", (wide,), outside)
    asked = [values.instead("_local_scalar_dense", None, (each,)) for each in (wide, outside)]
    assert asked == [1, False] and asked[1] is False and values.assumed == [PIXELS]
    assert values.instead("_local_scalar_dense", None, (torch.zeros(1),)) is None
