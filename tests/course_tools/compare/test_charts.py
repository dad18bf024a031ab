"""The pictures of a comparison, looked at as pixels and as words."""

import dataclasses
import io
import itertools

import pytest
from measured import measured
from PIL import Image

from course_tools.compare.charts import log_axes
from course_tools.compare.measurement import Measurement
from course_tools.compare.results import Result
from course_tools.figures import lecture_axes, picture

CPU_BLUE, CUDA_ORANGE, XLA_GREEN = (0, 114, 178), (213, 94, 0), (0, 158, 115)


def rows(label: str, kind: str, *rates: float, work: str = "CNN step") -> list[Measurement]:
    found = []
    for size, rate in ((16 * 4**k, rate) for k, rate in enumerate(rates)):
        rounds_s = (size / (rate * f) for f in (0.9, 1, 1.1))
        who = {"label": label, "kind": kind, "device": "d"}
        who |= {"threads": 1 if label.endswith(" 1 thread") else 2}
        found.append(measured(*rounds_s, size=size, workload=work, **who))
    return found


def comparison(*parts: list[Measurement]) -> Result:
    return Result(tuple(row for part in parts for row in part))


CPU_ROWS, GPU_ROWS = (
    rows("cpu, 2 threads", "cpu", 900, 1000, 1100),
    rows("cuda:0", "cuda", 300, 3000, 30000),
)


def pixels(shown) -> Image.Image:
    return Image.open(io.BytesIO(shown.png)).convert("RGB")


def count(image: Image.Image, color: tuple[int, int, int], slack: int = 40) -> int:
    def near(pixel):
        return all(abs(a - b) <= slack for a, b in zip(pixel, color, strict=True))

    return sum(number for number, pixel in image.getcolors(2**24) if near(pixel))


def test_each_device_has_its_colour():
    image = pixels(comparison(CPU_ROWS, GPU_ROWS).plot())
    assert image.size == (1280, 720)
    assert image.getpixel((2, 2)) == (255, 255, 255)
    assert count(image, CPU_BLUE) > 1000
    assert count(image, CUDA_ORANGE) > 1000
    assert count(image, XLA_GREEN) == 0


def test_the_words_say_what_the_picture_shows():
    alt = comparison(CPU_ROWS, GPU_ROWS).plot().alt
    assert "cpu, 2 threads: 900 at 16, 1.1k at 256." in alt
    assert "cuda:0: 300 at 16, 30k at 256." in alt


@pytest.mark.parametrize(
    ("rates", "title"),
    [
        ((300, 3000, 30000), "cuda:0: faster at 64 and above"),
        ((3000, 3000, 30000), "cuda:0: faster at every size"),
        ((3000, 3000, 300), "cuda:0 does not win at 256"),
    ],
)
def test_the_title_says_who_wins_and_the_axes_that_they_are_logarithmic(rates, title):
    alt = comparison(CPU_ROWS, rows("cuda:0", "cuda", *rates)).plot().alt
    assert alt.startswith(
        f"{title}: CNN step (fp32), samples per second against batch, logarithmic."
    )
    assert comparison(CPU_ROWS).plot().alt.startswith("CNN step (fp32): ")
    assert comparison(CPU_ROWS).plot(title="Mine").alt.startswith("Mine: ")


@pytest.mark.parametrize(
    ("doubtful", "title"),
    [
        ({0}, "cuda:0: faster at 64 and above"),
        ({0, 1}, "cuda:0: faster at 256 and above"),
        ({2}, "Not sure: a point at 256 is unreliable"),
        ({0, 1, 3}, "Not sure: 3 of 6 points are unreliable"),
    ],
)
def test_a_title_counts_no_point_that_is_not_to_be_trusted_as_won(doubtful, title):
    marked = []
    for place, row in enumerate([*CPU_ROWS, *GPU_ROWS]):  # three sizes each
        marked.append(dataclasses.replace(row, warnings=("noise",) if place in doubtful else ()))
    assert comparison(marked).plot().alt.startswith(f"{title}: ")


def test_a_point_that_is_not_to_be_trusted_is_crossed_and_each_line_named_at_its_end(drawn):
    doubtful = dataclasses.replace(CPU_ROWS[1], warnings=("noise",))
    one = rows("cpu, 1 thread", "cpu", 500, 600, 700)
    comparison([CPU_ROWS[0], doubtful, CPU_ROWS[2]], one).plot()
    lines = drawn[0].get_lines()
    (crossed,) = [line for line in lines if line.get_marker() == "x" and len(line.get_xdata())]
    assert crossed.get_xydata().tolist() == [[64, pytest.approx(1000)]]
    ends = {text.get_text(): text.xy for text in drawn[0].texts if text.get_text()[:3] == "cpu"}
    assert ends["cpu, 2 threads"] == (256, pytest.approx(1100))
    assert ends["cpu, 1 thread"] == (256, pytest.approx(700))
    looks = {(line.get_marker(), line.get_linestyle()) for line in lines if line is not crossed}
    assert len(looks) >= 2  # one thread is told from all of them without its name


def test_a_result_from_elsewhere_is_drawn_and_says_where_it_is_from():
    published = Result(tuple(rows("TPU", "xla", 5000, 6000, 7000)), origin="published")
    shown = comparison(CPU_ROWS).plot([published])
    assert count(pixels(shown), XLA_GREEN) > 300
    assert "TPU (published): 5k at 16" in shown.alt


@pytest.mark.parametrize(
    "name", ["$\\frac{1}{$", "x" * 400, "a\nb\x1b[31m", "<script>alert(1)</script>"]
)
def test_any_name_can_be_drawn(name):
    assert (
        count(pixels(comparison(rows(name, "cuda", 1, 2, 3, work=name)).plot()), CUDA_ORANGE) > 300
    )


def test_a_picture_of_nothing_is_refused():
    with pytest.raises(ValueError, match="holds 0 of them"):
        comparison().plot()


@pytest.mark.parametrize(
    "sizes", [range(16, 1025, 16), range(100, 1001, 100), [2**k for k in range(4, 14)], [64]]
)
def test_the_sizes_on_the_axis_never_touch(sizes):
    axes = lecture_axes("Sizes")
    axes.plot(sizes, sizes, marker="o")
    log_axes(axes, sizes)
    axes.figure.canvas.draw()
    boxes = sorted(label.get_window_extent().extents.tolist() for label in axes.get_xticklabels())
    assert all(one[2] < other[0] for one, other in itertools.pairwise(boxes))
    assert axes.get_xticks()[0] == sizes[-1]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert not len(axes.get_xticks(minor=True)) and not len(axes.get_yticks(minor=True))
    picture(axes, "The sizes of a comparison on its axis.")  # closes it


@pytest.mark.parametrize(("high", "digits"), [(9, "12346"), (90, "125"), (900, "1")])
def test_as_many_rates_are_marked_as_there_is_room_for(high, digits):
    axes = lecture_axes("Rates")
    axes.set_ylim(1, high)
    log_axes(axes, [99_000, 10**6])
    axes.set_ylim(1, high)
    marked = {f"{tick:e}"[0] for tick in axes.get_yticks() if 1 <= tick <= high}
    assert marked == set(digits)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1M", "99,000"]
    picture(axes, "The rates of a comparison on its axis.")  # closes it
