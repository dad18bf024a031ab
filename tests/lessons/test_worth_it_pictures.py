import pytest

from course_utils.lessons.worth_it import draw_crossover


def steps(rates):
    """Return seconds of a step by batch, for these samples a second at batches of 1, 10 and 100."""
    return {batch: batch / rate for batch, rate in zip((1, 10, 100), rates, strict=True)}


@pytest.mark.parametrize(
    "here, there, title",
    [
        # On logarithmic axes both lines are straight between 10 and 100, and they meet halfway: at 31.6.
        ([100, 1000, 1000], [10, 100, 10_000], "T4: faster from about batch 30 on"),
        ([100, 100, 100], [10, 20, 50], "T4: slower throughout, as estimated"),
        ([100, 100, 100], [200, 300, 400], "T4: faster throughout, as estimated"),
        # A win at the smallest batch that does not last is not counted.
        ([100, 1000, 1000], [200, 100, 10_000], "T4: faster from about batch 30 on"),
    ],
)
def test_the_title_says_from_which_batch_on_the_first_chip_is_faster_for_good(here, there, title):
    assert draw_crossover(steps(here), {"T4": steps(there), "A100": steps([1, 1, 1])}).alt.startswith(f"{title}. ")
