"""The recordings of real GPUs. The figures were read from the whole traces by a script apart."""

import gzip
import json
import re

import pytest
from course_lessons import recordings
from course_lessons.recordings import load, pictures

from course_tools.timeline.timeline import Timeline
from course_tools.timeline.trace import complete_events, steps_of

TRACES = [name for name in recordings.names() if name != "resnet50_memory"]


def test_every_file_has_its_source_and_every_source_its_file():
    files = {path.name.removesuffix(".json.gz") for path in recordings.FOLDER.glob("*.json.gz")}
    assert files == set(recordings.names())


@pytest.mark.parametrize("name", recordings.names())
def test_a_recording_says_where_it_is_from_and_brings_its_licence(name):
    recording = load(name)
    assert re.fullmatch("[0-9a-f]{40}", recording.commit)
    assert recording.commit[:8] in recording.caption and recording.card in recording.caption
    folder = recordings.FOLDER
    licences = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("LICENSE-*")}
    assert "Permission is hereby granted" in licences["LICENSE-hta"]
    assert "Redistribution and use" in licences["LICENSE-kineto"]
    assert f"LICENSE-{'kineto' if 'kineto' in recording.source else 'hta'}" in licences


@pytest.mark.parametrize("name", TRACES)
def test_a_recording_is_small_and_names_no_person_and_no_host(name):
    packed = (recordings.FOLDER / f"{name}.json.gz").read_bytes()
    assert len(packed) < 64_000
    trace = json.loads(gzip.decompress(packed))
    assert trace.keys() == {"deviceProperties", "distributedInfo", "traceEvents"}


def test_a_recording_that_does_not_exist_is_an_error_that_names_those_that_do():
    with pytest.raises(ValueError, match=r"no recording 'h100'; there are resnet50_no_worker, "):
        load("h100")


@pytest.mark.parametrize(
    ("name", "step_ms", "kernels"),
    [
        ("resnet50_no_worker", 149.0, 1460),
        ("resnet50_four_workers", 121.9, 1478),
        ("resnet50_v100", 95.6, 870),
        ("resnet50_two_a100", 219.7, 900),
        ("eight_a100", 76.7, 1428),
        ("sixteen_a100", 216.5, 1075),
        ("tiny_mi250", 9.3, 14),
    ],
)
def test_a_cut_step_is_as_long_and_has_about_as_many_kernels_as_in_the_whole_trace(
    name, step_ms, kernels
):
    trace = load(name).trace
    (step,) = steps_of(complete_events(trace))
    assert step["dur"] / 1e3 == pytest.approx(step_ms, abs=0.1)
    found = [one for one in trace["traceEvents"] if one["cat"].lower() == "kernel"]
    # kernels of the neighbouring steps reach into a step: the host is ahead of the device
    assert len(found) == pytest.approx(kernels, rel=0.08)


@pytest.mark.parametrize(
    ("name", "busy"),
    [
        ("resnet50_no_worker", {"device": 98.1 / 149.0, "copies": 1.65 / 149.0}),
        ("resnet50_four_workers", {"device": 98.6 / 121.9, "copies": 2.89 / 121.9}),
        ("resnet50_v100", {"device": 93.7 / 95.6}),
        ("eight_a100", {"exchange": 29.2 / 76.7}),
        ("sixteen_a100", {"exchange": 36.9 / 216.5}),
        ("resnet50_two_a100", {"exchange": 12.3 / 219.7}),
    ],
)
def test_the_lanes_of_a_recording_are_as_busy_as_in_the_whole_trace(name, busy):
    step = Timeline.of_trace(load(name).trace)
    for kind, share in busy.items():
        (lane,) = [lane for lane in step.lanes if lane.kind == kind]
        assert lane.busy_s / step.end_s == pytest.approx(share, abs=0.01)


def test_host_launches_copies_exchanges_and_streams_are_in_one_picture():
    lanes = Timeline.of_trace(load("eight_a100").trace).lanes
    assert [(lane.kind, lane.name) for lane in lanes] == [
        ("host", "host"),
        ("host", "backward"),
        ("launches", "launches"),
        ("copies", "copies"),
        ("exchange", "NCCL"),
        ("device", "stream 7"),
        ("device", "stream 20"),
    ]


@pytest.mark.parametrize(
    ("draw", "title"),
    [
        (pictures.draw_copy_and_work, "Part of a step, recorded on V100"),
        (pictures.draw_exchange, "rank 3 of 8, recorded on A100"),
        (pictures.draw_workers, "four workers, recorded on V100"),
        (pictures.draw_launches, "A100, one of two, recorded on A100"),
        (pictures.draw_first_launches, "recorded on AMD MI250"),
        (pictures.draw_waiting, "rank 0 of 16, recorded on A100"),
        (pictures.draw_memory, "At the peak: parameters 0.10 GB"),
    ],
)
def test_a_picture_of_a_recording_says_that_others_recorded_it_and_on_which_card(draw, title):
    alt = draw().alt
    assert title in alt and "Recorded by others on" in alt and "Source: github.com/" in alt


def test_the_recorded_memory_of_resnet50_agrees_with_its_parameters_and_its_layers():
    _, gigabytes = pictures.memory_over_time()
    # 25,557,032 parameters, and 53,120 means and variances of its batch norms, of 4 bytes each
    assert max(gigabytes["optimizer"]) == 25_557_032 * 4 / 1e9
    assert max(gigabytes["parameters"]) == (25_557_032 + 53_120) * 4 / 1e9
    # the whole timeline's peak, by a script apart; each gradient has its parameter's size
    totals = [sum(parts) for parts in zip(*gigabytes.values(), strict=True)]
    assert max(totals) == pytest.approx(3.083, abs=0.001)
    assert max(gigabytes["gradients"]) == pytest.approx(25_557_032 * 4 / 1e9, rel=0.1)
