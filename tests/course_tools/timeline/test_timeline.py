"""Order, nesting and gaps of real traces. No test here depends on how long something takes."""

import json
import queue
import threading

import pytest
import torch
from torch.profiler import record_function

from course_tools.timeline.timeline import Timeline, timeline


def names(lane):
    return [span.name for span in lane.named]


def lane_of(found, name):
    return next(lane for lane in found.lanes if lane.name == name)


@pytest.fixture
def worker():
    """Return a function that hands work to a thread whose name says that it stands for a device."""
    jobs = queue.Queue()

    def work():
        while (job := jobs.get()) is not None:
            with record_function("product"):
                job()
            jobs.task_done()

    thread = threading.Thread(target=work, name="device (test)", daemon=True)
    thread.start()
    yield jobs
    jobs.put(None)
    thread.join()


def test_named_blocks_come_in_order_and_contain_their_operations():
    def fn():
        with record_function("first"):
            torch.ones(64, 64) @ torch.ones(64, 64)
        with record_function("second"):
            torch.ones(64).exp()

    (host,) = timeline(fn).lanes
    assert names(host) == ["first", "second"]
    first, second = host.named
    inside = {
        span.name
        for span in host.work
        if first.start_s <= span.start_s and span.end_s <= first.end_s
    }
    assert "aten::matmul" in inside and "aten::exp" not in inside
    assert first.end_s <= second.start_s
    assert "aten::mm" not in {span.name for span in host.work}  # it lies in aten::matmul


def test_a_second_thread_has_a_lane_and_the_host_waits_for_it(worker):
    ready = threading.Event()

    def fn():
        ready.clear()
        worker.put(lambda: (ready.wait(), torch.ones(64, 64) @ torch.ones(64, 64)))
        with record_function("launched"):
            torch.ones(1) + 1
        ready.set()  # so the product cannot begin before the host has gone on
        with record_function("wait"):
            worker.join()

    found = timeline(fn)
    assert [lane.kind for lane in found.lanes] == ["host", "device"]
    host, device = found.lanes
    assert host.named[0].end_s <= device.work[0].start_s
    assert names(device) == ["product"] and [span.name for span in host.waits] == ["wait"]
    assert host.waits[0].end_s >= device.work[-1].end_s


def test_the_work_runs_once_before_it_is_seen():
    calls = []
    found = timeline(lambda: calls.append(torch.ones(3)))
    assert len(calls) == 2 and len(found.lanes[0].work) == 1


def test_times_that_a_program_has_noted_itself_become_lanes():
    found = Timeline.of_spans(
        {
            "worker 0": [("decode", 10.0, 12.0), ("decode", 13.0, 14.0)],
            "worker 1": [("decode", 11, 14)],
        }
    )
    one, two = found.lanes
    assert (one.name, two.name, found.end_s) == ("worker 0", "worker 1", pytest.approx(4.0))
    assert one.busy_s == pytest.approx(3.0) and two.work[0].start_s == pytest.approx(1.0)
    empty = Timeline.of_spans({"worker": [("nothing", 1.0, 1.0)]})
    assert empty.end_s == 0.0 and empty.plot().png


def test_a_step_of_the_cnn_is_small_enough_for_a_notebook():
    from course_lessons.data.models import ImageCNN

    model, images = ImageCNN(), torch.zeros(8, 3, 32, 32)
    data, _ = timeline(lambda: model(images).sum().backward())._repr_mimebundle_()
    assert len(json.dumps(data)) < 200_000


def test_a_device_that_is_not_here_is_an_error():
    with pytest.raises(RuntimeError, match="'cuda:99' was requested"):
        timeline(lambda: None, device="cuda:99")
