"""The figures of real GPUs, against what scripts apart read from the whole traces."""

import re

import pytest
from course_lessons import recordings
from course_lessons.recordings import load

TIMELINES = [name for name in recordings.names() if name != "memory"]


def test_every_table_has_its_source_and_every_source_its_table():
    tables = {path.stem for path in recordings.FOLDER.glob("*.csv")}
    assert tables == set(recordings.names())


@pytest.mark.parametrize("name", recordings.names())
def test_a_recording_says_where_it_is_from_and_is_a_table_of_a_hundred_rows(name):
    recording = load(name)
    assert re.fullmatch("[0-9a-f]{40}", recording.commit)
    assert recording.commit[:8] in recording.caption and recording.card in recording.caption
    assert 30 < len(recording.rows) < 110


def test_a_recording_that_does_not_exist_is_an_error_that_names_those_that_do():
    with pytest.raises(ValueError, match=r"no recording 'h100'; there are v100_copy, "):
        load("h100")


@pytest.mark.parametrize(
    ("name", "end_ms", "busy_ms"),
    [
        ("v100_no_worker", 149.0, {"GPU": 98.1}),
        ("v100_four_workers", 121.9, {"GPU": 98.6}),
        ("v100_copy", 20.0, {"copies": 1.65}),
        ("a100_launches", 3.0, {}),
    ],
)
def test_the_lanes_are_as_long_and_as_busy_as_in_the_whole_trace(name, end_ms, busy_ms):
    lanes = {lane.name: lane for lane in load(name).lanes}
    assert 1e3 * max(lane.end_s for lane in lanes.values()) == pytest.approx(end_ms, abs=0.1)
    for lane, expected_ms in busy_ms.items():
        assert 1e3 * lanes[lane].busy_s == pytest.approx(expected_ms, abs=0.1)


@pytest.mark.parametrize("name", TIMELINES)
def test_work_that_is_joined_in_a_row_is_spread_over_its_length(name):
    recording = load(name)
    for lane in recording.lanes:
        rows = [row for row in recording.rows if row["lane"] == lane.name]
        work = [row for row in rows if row["layer"] == "work"]
        assert len(lane.work) == sum(int(row["count"]) for row in work)
        written_ms = sum(float(row["busy_ms"]) for row in work)
        assert 1e3 * lane.busy_s == pytest.approx(written_ms, rel=0.01)
