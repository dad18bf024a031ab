import re

import pytest
from course_lessons.recordings import pictures

pytestmark = pytest.mark.usefixtures("drawn")


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (pictures.draw_copy_and_work, "part of a step of 149 ms, recorded on V100"),
        (pictures.draw_idle_gpu, "GPU: busy for 66%"),
        (pictures.draw_workers, "four workers, recorded on V100"),
        (pictures.draw_launches, "part of a step, recorded on A100"),
        (pictures.draw_memory, "At the peak: parameters 0.10 GB"),
    ],
)
def test_a_picture_of_a_recording_says_that_others_recorded_it_and_on_which_card(draw, words):
    alt = draw().alt
    assert words in alt and "Recorded by others on" in alt and "Source: github.com/" in alt


def test_the_recorded_memory_of_resnet50_agrees_with_its_parameters_and_its_layers():
    _, gigabytes = pictures.memory_over_time()
    # 25,557,032 parameters, and 53,120 means and variances of its batch norms, of 4 bytes each
    assert max(gigabytes["optimizer"]) == 25_557_032 * 4 / 1e9
    assert max(gigabytes["parameters"]) == (25_557_032 + 53_120) * 4 / 1e9
    # the whole timeline's peak, by a script apart; each gradient has its parameter's size
    totals = [sum(parts) for parts in zip(*gigabytes.values(), strict=True)]
    assert max(totals) == pytest.approx(3.083, abs=0.001)
    assert max(gigabytes["gradients"]) == pytest.approx(25_557_032 * 4 / 1e9, rel=0.1)


def test_each_kind_of_memory_is_named_beside_its_colour_in_the_order_of_the_stack(drawn):
    pictures.draw_memory()
    times_ms, gigabytes = pictures.memory_over_time()
    legend = drawn[0].get_legend()
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["other", "activations", "gradients", "optimizer", "parameters"]
    at_peak = max(zip(*gigabytes.values(), strict=True), key=sum)
    most = dict(zip(gigabytes, at_peak, strict=True))["activations"]
    title = f"At the peak, {most:.1f} of 3.1 GB are activations"  # see the test above
    assert drawn[0].get_title("left") == title
    below = 0.0
    for kind, shade, area in zip(
        names[::-1], legend.get_patches()[::-1], drawn[0].collections, strict=True
    ):
        below += max(gigabytes[kind])
        assert tuple(shade.get_facecolor()) == tuple(area.get_facecolor()[0])
        corners = area.get_paths()[0].vertices
        assert corners[:, 0].max() == max(times_ms) and corners[:, 1].max() <= below + 1e-9
        assert corners[:, 1].max() >= max(gigabytes[kind])


def test_a_title_has_the_share_that_the_lane_of_the_gpu_has(drawn):
    said = pictures.draw_idle_gpu().alt + pictures.draw_workers().alt
    idle, without, four = re.findall(r"GPU: busy for (\d+)%", said)
    titles = [axes.get_title("left") for axes in drawn]
    assert titles == [
        f"This V100 has work for {idle}% of its step",
        f"GPU busy: {without}% without workers, {four}% with 4",
    ]
    assert idle == without == "66" and int(four) > 66
