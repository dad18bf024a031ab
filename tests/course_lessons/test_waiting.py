import pytest
import torch
from course_lessons.waiting import photographs
from course_lessons.waiting.compile_gains import gains, gains_by_family
from course_lessons.waiting.photographs import BATCH, SIDE, Photographs, watch_training
from torch.utils.data import DataLoader


def test_a_batch_holds_small_pixels_and_who_loaded_it_when(monkeypatch):
    paused = []
    monkeypatch.setattr(photographs.time, "sleep", paused.append)
    pixels, (who, start, end) = Photographs()[1]
    assert pixels.shape == (BATCH, 3, SIDE, SIDE) and pixels.dtype == torch.uint8
    assert who == "loading" and start < end
    assert paused == [0.07]  # the lesson's text: "a pause of 70 ms"


@pytest.mark.process
def test_workers_say_who_they_are():
    loader = DataLoader(Photographs(4), batch_size=None, num_workers=2)
    assert {who for _, (who, _, _) in loader} == {"worker 0", "worker 1"}


def test_the_timeline_of_a_training_shows_who_loads_and_who_trains(monkeypatch):
    done = []
    monkeypatch.setattr(photographs, "wait_for", lambda device: done.append("wait"))
    monkeypatch.setattr(photographs, "make_step", lambda: lambda batch: done.append("step"))
    _, loading, training = watch_training(workers=0).lanes
    assert done == ["step", *["step", "wait"] * 6]  # the first one only warms up
    assert (loading.name, training.name, len(loading.work)) == ("loading", "device: training", 6)
    for load, step in zip(loading.work, training.work, strict=True):
        assert load.end_s <= step.start_s


@pytest.mark.process
def test_the_clock_of_the_timeline_starts_before_the_workers_do():
    starting, *workers, _ = watch_training(workers=2).lanes
    assert starting.work[0].start_s == 0 and starting.work[0].end_s > 0
    assert all(lane.work[0].start_s >= starting.work[0].end_s for lane in workers)


def test_published_pairs_are_those_that_the_lesson_names():
    four, five = gains("RTX 4090"), gains("RTX 5090")
    assert (len(four), len(five)) == (1278, 1324)
    assert four["resnet50 224"] == pytest.approx(1.7, abs=0.4)


def test_the_table_of_gains_names_what_each_row_is():
    column = gains_by_family("RTX 4090")["RTX 4090"]
    found = sorted(gains("RTX 4090").values())
    middle = (found[638] + found[639]) / 2  # of 1,278
    assert column["networks measured"] == "1,278"
    assert column["times as fast: median of all"] == f"{middle:.2f}"
    assert column["slower when compiled"] == f"{sum(gain < 1 for gain in found) / 1278:.1%}"
