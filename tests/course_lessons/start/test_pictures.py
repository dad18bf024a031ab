"""The pictures of lesson 0: what their words, bars and titles say is what they were given."""

import pytest
from course_lessons.start.pictures import draw_own_times, draw_published_times, published_conditions

from course_utils.timing import Timing


def test_the_opening_picture_says_what_was_published(drawn):
    alt = draw_published_times().alt
    assert alt.startswith("50,000 photographs: half an hour or 8 seconds")
    # 50,000 photographs at 30.48, 98, 409, 1,190 and 6,356.02 images/s: the rates that the two
    # repositories print
    for part in ("one at a time 27.3 min", "one at a time 8.5 min", "16 at a time 2.04 min"):
        assert part in alt
    assert "128 at a time, 16-bit numbers 42 s" in alt and "16-bit numbers 7.87 s" in alt
    minutes = [bar.get_width() for bar in drawn[0].patches]
    rates = (30.48, 98, 409, 1190, 6356.02)
    assert minutes == pytest.approx([50_000 / rate / 60 for rate in rates], rel=1e-3)
    heights = [text.xy[1] for text in drawn[0].texts]  # each label at its own bar
    assert heights == pytest.approx([0, 1, 2, 3, 4])
    conditions = published_conditions()
    assert list(conditions["batch"]) == ["1", "1", "16", "128", "1,024"]
    assert list(conditions["images/s"])[:4] == ["30.5", "98", "409", "1,190"]


def timing(images_per_s: float, *warnings: str) -> Timing:
    return Timing("cpu", 1, 1.0, (16 / images_per_s,) * 20, 1, warnings=warnings)


def test_the_title_of_ones_own_times_is_the_gain_if_there_is_an_accelerator():
    both = draw_own_times({"this CPU": timing(10), "T4": timing(400)}, 16).alt
    assert "40 times as fast as your CPU" in both
    alone = draw_own_times({"this CPU": timing(10)}, 16).alt
    assert "Your CPU takes 83.3 min for this job" in alone
    assert "this CPU, measured 83.3 min" in alone
    assert "Busy" not in alone


def test_an_unreliable_time_is_neither_a_title_nor_a_label():
    slow = timing(50_000 / 3_762, "other programs used the processor")
    for timings in ({"this CPU": slow}, {"this CPU": slow, "T4": timing(400)}):
        said = draw_own_times(timings, 16).alt
        assert said.startswith("Busy machine: run this cell again")
        assert "this CPU, measured unreliable: run again" in said and "62.7" not in said


def test_an_unreliable_bar_is_a_little_longer_than_the_longest_sure_one(drawn):
    shown = {"this CPU": timing(1, "busy"), "T4": timing(100), "A100": timing(1000)}
    draw_own_times(shown, 16)
    (unsure,) = [bar.get_width() for bar in drawn[0].patches if bar.get_hatch()]
    sure = [bar.get_width() for bar in drawn[0].patches if not bar.get_hatch()]
    assert len(sure) == 4 and unsure == pytest.approx(1.3 * max(sure))


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(59.9, "59.9 s"), (60, "1 min"), (7199, "120 min"), (7201, "2 h"), (60_600, "16.8 h")],
)
def test_a_job_is_given_in_minutes_unless_these_are_too_few_or_too_many(seconds, said):
    alt = draw_own_times({"CPU": timing(50_000 / seconds)}, 16).alt
    assert f"Your CPU takes {said} for this job" in alt
