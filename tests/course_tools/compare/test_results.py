"""Results: their verdict, their table, and their file."""

import math
from dataclasses import replace

import pytest
from measured import measured

from course_tools.compare.measurement import Measurement
from course_tools.compare.results import Result, describe_machine

ONE = measured(0.01, 0.02, warnings=("noise",))
GPU = "a <GPU> & co"
PUBLISHED = replace(
    ONE, label=GPU, kind="cuda", device=GPU, threads=None, rounds_s=(0.001,), warnings=()
)
SAVED = Result(
    (ONE, PUBLISHED),
    date="2026-11-20",
    command="a command",
    versions={"torch": "2.9.0", "driver": "575.57.08"},
    machine={"cpu": "a cpu"},
)


def test_what_was_saved_is_loaded(tmp_path):
    SAVED.save(tmp_path / "mine.json")
    assert Result.load(tmp_path / "mine.json") == SAVED


def test_a_call_may_take_from_a_nanosecond_to_years():
    assert measured(1e-9, 1e9).median_s == pytest.approx(5e8)


def test_a_result_says_what_made_it():
    made = describe_machine()
    assert {"cpu", "system"} <= made["machine"].keys()
    assert {"python", "torch", "course"} <= made["versions"].keys()
    assert Result(**made).date


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"version": 2', '"version": 1', "its schema and version are"),
        ('"label"', '"lable"', "lable"),
        ('"warnings"', '"worries"', "warnings"),
        ("{", "", "Extra data"),
        ("{", "[", "delimiter"),
        ("{", "[" * 100_000, "while decoding a JSON array"),  # deeper than Python goes
        ('"size": 16', '"size": 0', "size is 0"),
        ('"size": 16', '"size": "16"', "size is '16'"),
        ('"items": 16.0', '"items": null', "items is None"),
        ('"label": "cpu, 1 thread"', '"label": ["cpu"]', "label is ['cpu']"),
        ("0.01,", "NaN,", "rounds_s is"),
        ("0.01,", "1e-320,", "rounds_s is (1e-320, 0.02), not between 1e-15 and 1e+30"),
        ("0.01,", "Infinity,", "rounds_s is"),
        ('"size": 16', '"size": 1' + "0" * 400, "size is 1000"),
        ('"items": 16.0', '"items": 1' + "0" * 5000, "4300 digits"),
        ('"threads": 1', '"threads": "one"', "threads is 'one'"),
        ('"noise"', "7", "warnings are (7,)"),
        ('"date": "2026-11-20"', '"date": 2026', "date is 2026"),
        ('"torch": "2.9.0",', '"torch": "2.9.0"', "delimiter"),
        ('"machine": {', '"machine": [], "more": {', "unexpected keyword"),
        ("0.01,", '"abc",', "rounds_s is"),
    ],
)
def test_a_file_that_is_no_result_is_an_error_with_its_name(tmp_path, old, new, message):
    SAVED.save(tmp_path / "mine.json")
    text = (tmp_path / "mine.json").read_text().replace(old, new, 1)
    (tmp_path / "odd.json").write_text(text)
    wrong = r"odd\.json is not a result that this course can read"
    with pytest.raises(ValueError, match=wrong) as refused:
        Result.load(tmp_path / "odd.json")
    assert message in str(refused.value)


def test_two_kinds_of_work_are_neither_drawn_nor_tabled():
    both = Result((ONE, replace(ONE, workload="RNN step")))
    for show in (both.plot, both.to_frame):
        with pytest.raises(ValueError, match="this result holds 2 of them"):
            show()


@pytest.mark.parametrize("other", [{"workload": "RNN step"}, {"precision": "bf16"}, {"unit": "B"}])
def test_a_picture_shows_one_kind_of_work_also_from_elsewhere(other):
    with pytest.raises(ValueError, match="Pass results of the same work"):
        Result((ONE,)).plot([Result((replace(ONE, **other),))])


def row(size: int, label: str, *rounds_s: float, kind: str = "cpu", **more) -> Measurement:
    known = {"workload": "Work", "label": label, "kind": kind, "device": "d"}
    return measured(*rounds_s, size=size, **known | more)


def comparison(*rows: Measurement) -> Result:
    return Result(rows, date="2026-11-20")


def line(label, *seconds, kind="cpu"):
    """Return the rows of a contestant that takes so many seconds at the sizes 1, 2, 4, ..."""
    return [row(2**step, label, *[each] * 8, kind=kind) for step, each in enumerate(seconds)]


ONE_THREAD = line("cpu, 1 thread", 1.0, 2.0, 4.0, 8.0)


TWO_THREADS = line("cpu, 2 threads", 2.0, 4.0, 8.0, 16.0)


@pytest.mark.parametrize(
    ("lines", "verdict"),
    [
        ([ONE_THREAD], ""),
        ([ONE_THREAD, line("cuda:0", 3, 3, 3, 3, kind="cuda")], "cuda:0: faster at 4 and above"),
        # over both numbers of threads, of which one thread is the better one here
        (
            [ONE_THREAD, TWO_THREADS, line("cuda:0", 3, 3, 3, 3, kind="cuda")],
            "cuda:0: faster at 4 and above",
        ),
        # faster in between, and not in the end
        ([ONE_THREAD, line("cuda:0", 3, 1, 1, 9, kind="cuda")], "cuda:0 does not win at 8"),
        ([TWO_THREADS, ONE_THREAD], "cpu, 1 thread: faster at every size"),
        (
            [line(f"cuda:{n}", s, kind="cuda") for n, s in enumerate((2, 1))],
            "cuda:1: faster at every size",
        ),
        # of two accelerators, the faster one
        (
            [
                ONE_THREAD,
                line("mps:0", 9, 9, 9, 9, kind="mps"),
                line("cuda:0", 3, 3, 3, 3, kind="cuda"),
            ],
            "cuda:0: faster at 4 and above",
        ),
        # of two accelerators the one that is faster at the largest size, not at the smallest
        (
            [
                ONE_THREAD,
                line("mps:0", 0.5, 0.5, 7, 7, kind="mps"),
                line("cuda:0", 3, 3, 3, 3, kind="cuda"),
            ],
            "cuda:0: faster at 4 and above",
        ),
    ],
)
def test_the_verdict_says_from_where_on_one_is_faster_for_good(lines, verdict):
    assert comparison(*(one for line in lines for one in line)).verdict() == verdict


@pytest.mark.parametrize("size", [64, 65_536, 99_999, 131_072, 262_144, 2**24, 2**30])
def test_the_verdict_fits_into_a_title_at_any_size(size):
    label = "xla:0 (rehearsal)"
    rows = [row(1, "cpu", *[1.0] * 8), row(size, "cpu", *[2.0] * 8)]
    rows += [row(1, label, *[2.0] * 8, kind="xla"), row(size, label, *[1.0] * 8, kind="xla")]
    verdict = comparison(*rows).verdict()
    assert "faster at" in verdict and len(verdict) <= 45
    assert (f"{size:,}" in verdict) == (size < 100_000)


def test_a_lead_within_the_noise_is_no_lead():
    noisy = (0.5, 1.5, 0.6, 1.4, 0.7, 1.3, 0.4, 1.2)
    found = comparison(row(1, "cpu, 1 thread", *[1.0] * 8), row(1, "cuda:0", *noisy, kind="cuda"))
    assert found.verdict() == "cuda:0 does not win at 1"


@pytest.mark.parametrize(("lead", "wins"), [(1.002, False), (1.004, False), (1.01, True)])
def test_a_lead_that_equal_calls_can_have_is_no_lead_however_little_noise_there_is(lead, wins):
    found = comparison(
        row(1, "cpu, 1 thread", *[lead] * 40), row(1, "cuda:0", *[1.0] * 40, kind="cuda")
    )
    assert ("faster at every size" in found.verdict()) == wins


def test_who_is_faster_is_decided_round_by_round():
    # Both slow down tenfold from round to round; within a round one is always twice as fast.
    assert Result().verdict() == ""  # of nothing
    found = comparison(row(1, "slow", 2.0, 20.0, 200.0), row(1, "fast", 1.0, 10.0, 100.0))
    assert list(found.to_frame()["95% interval"]) == ["1.00 to 1.00", "2.00 to 2.00"]
    assert found.verdict() == "fast: faster at every size"


def test_a_frame_has_one_line_for_each_size_and_contestant():
    frame = comparison(row(2, "slow", 2.0, 2.0), row(2, "fast", 0.5, 0.5)).to_frame()
    assert list(frame["device"]) == ["slow", "fast"]
    assert list(frame["median ms"]) == [2000.0, 500.0]
    assert list(frame["samples/s"]) == [1.0, 4.0]
    assert list(frame["times slow"]) == [1.0, 4.0]
    assert list(frame["reliable"]) == [True, True]


def test_the_middle_half_of_the_rates_is_that_of_the_times():
    assert row(6, "cpu", 1.0, 2.0, 3.0, 4.0, 5.0).rate_quartiles == (6 / 4, 6 / 2)
    assert row(6, "cpu", 3.0).rate_quartiles == (2, 2)


def test_contestants_of_unlike_sizes_have_a_verdict_and_a_frame():
    cpu = [row(size, "cpu, 1 thread", 2.0, 2.0) for size in (1, 2)]
    gpu = [row(size, "cuda:0", 1.0, 1.0, kind="cuda") for size in (2, 4)]
    found = comparison(*cpu, *gpu)
    assert found.verdict() == "cuda:0 does not win at 4"  # nobody else was measured there
    times = found.to_frame().set_index(["device", "batch"])["times cpu, 1 thread"]
    assert times["cuda:0", 2] == 2.0 and math.isnan(times["cuda:0", 4])
