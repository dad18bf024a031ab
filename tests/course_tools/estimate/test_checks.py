"""What is taken for a number, and which names may have been meant."""

import pytest

from course_tools.estimate.checks import check_positive, is_amount, nearest

NETWORKS = {name: name for name in ("resnet18", "resnet50", "resnet101", "resnet152", "vgg16")}
NETWORKS |= {"mobilenetv3_small": "mobilenetv3_small", "densenet121": "densenet121"}


def test_a_number_is_one_that_somebody_can_mean():
    assert check_positive("samples", 10**18 - 1) == 10**18 - 1
    for value in (0, 10**18, 1.0, True, "1"):
        with pytest.raises(ValueError, match="samples must be a positive integer"):
            check_positive("samples", value)
    with pytest.raises(ValueError, match=r"got 10000000000000000000\.\.\., which is too large"):
        check_positive("samples", 10**45)
    assert [is_amount(each) for each in (1e-30, 0.99e30, 1e30, 0, -1)] == [True, True] + [False] * 3


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("resnet51", ": the nearest are resnet50, resnet18, resnet152"),  # three of four
        ("mob", ": the nearest is mobilenetv3_small"),  # the beginning of a word
        ("mo", ""),
        ("densnet121", ": the nearest is densenet121"),  # a slip
        ("dsnt12", ""),  # several
        ("yolov8n", ""),
    ],
)
def test_names_of_the_same_family_or_a_slip_away_are_near(typed, said):
    assert nearest(typed, NETWORKS) == said
