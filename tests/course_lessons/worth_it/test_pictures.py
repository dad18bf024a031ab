import pytest
from course_lessons.worth_it.pictures import (
    draw_crossover,
    draw_held_out,
    draw_three_limits,
    factor_around,
)


def steps(rates):
    """Return seconds of a step by batch, for these samples a second at batches of 1, 10 and 100."""
    return {batch: batch / rate for batch, rate in zip((1, 10, 100), rates, strict=True)}


@pytest.mark.parametrize(
    "here, there, title",
    [
        # On logarithmic axes all lines are straight between 10 and 100. The ratios there are 0.1
        # and 10, so the ratio is batch ** 2 / 1000: it passes 1/2 at 22.4 and 2 at 44.7.
        ([100, 1000, 1000], [10, 100, 10_000], "T4 overtakes at batch 20 to 40"),
        # A win at the smallest batch that does not last is not counted.
        ([100, 1000, 1000], [300, 100, 10_000], "T4 overtakes at batch 20 to 40"),
        ([100, 100, 100], [10, 20, 40], "T4 is slower at every batch"),
        ([100, 100, 100], [300, 400, 500], "T4 is faster at every batch"),
        ([100, 100, 100], [60, 100, 190], "T4 is perhaps faster at every batch"),
        # From 1/4 to 1 over a decade: 1/2 is halfway. From 1 to 4: so is 2.
        ([100, 100, 100], [25, 25, 100], "T4 is perhaps faster beyond batch 30"),
        ([100, 100, 100], [100, 100, 400], "T4 is surely faster beyond batch 30"),
    ],
)
def test_the_title_says_between_which_batches_the_first_chip_overtakes(here, there, title):
    chips = {"T4": steps(there), "A100": steps([1, 1, 1])}
    assert draw_crossover(steps(here), chips, factors=(2, 2)).alt.startswith(f"{title}. ")


def test_the_band_of_an_estimate_is_its_factor_towards_fast_and_towards_slow(drawn):
    draw_crossover(steps([100, 100, 100]), {"T4": steps([50, 60, 70])}, factors=(3, 2))
    band = {round(float(y), 9) for _, y in drawn[0].collections[0].get_paths()[0].vertices}
    assert band == {0.25, 0.3, 0.35, 1.5, 1.8, 2.1}  # 0.5, 0.6 and 0.7 over 2, and times 3
    ends = {text.get_text(): text.xy for text in drawn[0].texts if hasattr(text, "xy")}
    assert ends.pop("T4, est.") == pytest.approx((100, 0.7))  # at the end of its line
    assert list(ends.values()) == [(100, 1)] and "thread" in next(iter(ends))


def test_dotted_lines_are_where_the_band_of_the_first_chip_holds_the_speed_of_this_cpu(drawn):
    chips = {"T4": steps([10, 100, 10_000]), "A100": steps([9000, 9000, 9000])}
    draw_crossover(steps([100, 1000, 1000]), chips, factors=(2, 2))
    dotted = [line.get_xdata()[0] for line in drawn[0].lines if line.get_linestyle() == ":"]
    assert dotted == [20, 40]  # see the table above


def test_a_chip_that_is_faster_at_every_batch_is_nowhere_too_close_to_call(drawn):
    alt = draw_crossover(steps([1, 1, 1]), {"T4": steps([43, 90, 450])}, factors=(2, 2)).alt
    assert not [line for line in drawn[0].lines if line.get_linestyle() == ":"]
    assert "too close" not in "".join(text.get_text() for text in drawn[0].texts)
    assert alt.endswith("T4: 43 to 450 times.")


def test_the_test_of_the_estimate_says_how_many_it_leaves_out_and_how_bad_the_worst_is(drawn):
    pairs = [(1.0, 1.1)] * 9 + [(2.0, 0.5)]  # nine are off by 1.1 and one by 4
    said = draw_held_out(pairs, "RTX 5090", uncounted=3).alt
    assert said.startswith("90% of 10 estimates: within 1.10 times. ")
    assert "the worst: 4.0 times; not counted: 3 more" in said
    # of eleven, nine tenths are ten
    eleven = [(1.0, 1.1)] * 9 + [(1.0, 1.2), (1.0, 4.0)]
    assert factor_around(eleven, 0.9) == pytest.approx(1.2)
    line, points = drawn[0].lines[::-1]
    assert list(points.get_xdata()) == [1.0] * 9 + [2.0] and points.get_ydata()[-1] == 0.5
    assert list(line.get_xdata()) == list(line.get_ydata()) == [1, 2]
    band = {tuple(corner) for corner in drawn[0].collections[0].get_paths()[0].vertices.round(9)}
    assert band == {(x, round(x * factor, 9)) for x in (1, 2) for factor in (1.1, 1 / 1.1)}


def test_the_overhead_of_an_addition_is_the_time_of_the_shortest(drawn):
    seconds = {1: 2e-6, 1000: 1e-6, 10**6: 1e-4}
    draw_three_limits(seconds)
    measured, overhead = drawn[0].lines
    assert dict(zip(measured.get_xdata(), measured.get_ydata(), strict=True)) == seconds
    assert set(overhead.get_ydata()) == {1e-6}
