import pytest
import torch
from course_lessons.waiting.compiled import gains, gains_by_family
from course_lessons.waiting.photographs import BATCH, SIDE, Photographs, watch_training
from course_lessons.waiting.queues import SimulatedDevice, train
from torch.utils.data import DataLoader


def test_a_batch_holds_small_pixels_and_who_loaded_it_when():
    pixels, (who, start, end) = Photographs()[1]
    assert pixels.shape == (BATCH, 3, SIDE, SIDE) and pixels.dtype == torch.uint8
    assert who == "loading" and start < end


@pytest.mark.process
def test_workers_say_who_they_are():
    loader = DataLoader(Photographs(4), batch_size=None, num_workers=2)
    assert {who for _, (who, _, _) in loader} == {"worker 0", "worker 1"}


def test_the_timeline_of_a_training_shows_who_loads_and_who_trains():
    loading, training = watch_training(workers=0).lanes
    assert (loading.name, training.kind, len(loading.work)) == ("loading", "device", 6)
    for load, step in zip(loading.work, training.work, strict=True):
        assert load.end_s <= step.start_s


@pytest.mark.skipif(torch.__version__ < (2, 7), reason="the profiler saw one thread before")
@pytest.mark.parametrize("read", [True, False])
def test_reading_the_loss_keeps_host_and_device_from_working_at_once(read):
    host, device = SimulatedDevice().record(train, read=read).lanes
    prepared = [span for span in host.named if span.name == "prepare"]
    assert len(device.work) == len(prepared) == 3
    following = zip(device.work[:-1], prepared[1:], strict=True)
    assert all(step.end_s <= block.start_s for step, block in following) == read


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
