import sys
import time
from functools import partial

import numpy as np
import psutil
import pytest
import torch
from course_lessons.cpu.pictures import _training_step, air_windows
from course_lessons.data.models import ImageCNN
from course_lessons.device_speed import lap_timer
from course_lessons.device_speed.busy_neighbours import busy_neighbours
from course_lessons.device_speed.image_step import training_step
from course_lessons.device_speed.pictures import draw_abba, draw_published, draw_readings
from course_lessons.device_speed.published import SIXTEEN_CORES, T4, resnet50_published, unlike_rows
from course_lessons.evidence.published import published
from course_lessons.gpu import own_step
from course_lessons.waiting.photographs import make_step
from start_python import python

from course_utils.devices import pick_device
from course_utils.hardware.machine import usable_cores


@pytest.mark.process
def test_there_is_a_neighbour_for_every_core_and_none_afterwards():
    before = set(psutil.Process().children())
    with busy_neighbours():
        neighbours = set(psutil.Process().children()) - before
        assert len(neighbours) == usable_cores()
    assert not any(neighbour.is_running() for neighbour in neighbours)


def test_in_the_picture_only_the_order_a_b_b_a_finds_equal_calls_about_equal(drawn):
    # eight calls of 1 s each, on a machine that needs 1 + drift x now: the sums' closed form
    words = draw_abba(drift=0.1).alt
    times = [1.1**number for number in range(8)]
    grouped = sum(times[:4]) / sum(times[4:])
    a_calls, b_calls = (0, 3, 4, 7), (1, 2, 5, 6)
    in_turn = sum(times[call] for call in a_calls) / sum(times[call] for call in b_calls)
    bars = [(bar.get_x(), bar.get_width()) for bar in drawn[0].patches]
    starts = [sum(times[:number]) for number in range(8)]
    np.testing.assert_allclose(bars, [*zip(starts, times, strict=True)] * 2)
    assert f"A takes {grouped:.2f} in the order A A A A B B B B" in words
    assert f"{in_turn:.2f} in the order A B B A A B B A times as long as B" in words
    drawn_ratios = [text.get_text() for text in drawn[0].texts if "=" in text.get_text()]
    assert drawn_ratios == [f"A / B = {grouped:.2f}", f"A / B = {in_turn:.2f}"]


def test_the_numbers_that_sum_up_a_timing_are_drawn_where_they_are(drawn):
    readings_s = [0.010, 0.020, 0.012, 0.040, 0.013]
    draw_readings(0.2, readings_s)
    assert drawn[0].get_title("left") == "The same step varies by a factor of 4.0"
    dots, first, *across = drawn[0].lines
    assert list(dots.get_ydata()) == readings_s and list(first.get_ydata()) == [0.2]
    heights = [line.get_ydata()[0] for line in across]
    assert heights == pytest.approx([0.295 / 6, 0.013, 0.010])  # mean of all, median, minimum
    named = {text.get_text(): text.xy[1] for text in drawn[0].texts if hasattr(text, "xy")}
    names = ("mean of all 49.2 ms", "median of the dots 13 ms", "minimum 10 ms")
    assert named == dict(zip(names, heights, strict=True))
    assert drawn[0].yaxis.get_major_formatter()(0.02, 0) == "20"  # of milliseconds


def test_nvidias_speeds_of_the_t4_are_its_latencies_up_to_six_percent():
    """Its table has both columns; the course's table of published speeds keeps the latency."""
    asked = {"device": "T4", "precision": "fp32", "model": "resnet50"}
    rows = published(**asked, training=False, compiled=False)
    assert {row.batch: row.samples_per_s for row in rows} == pytest.approx(T4, rel=0.06)


def test_the_first_picture_compares_the_published_ends_of_both_curves():
    assert draw_published().alt.startswith("Alike at batch 1, 4 times apart at 256: ResNet-50")
    found = resnet50_published()
    assert found.origin == "published"
    rates = [one.rate for label in found.labels for one in found.of(label)]
    assert rates == pytest.approx([*SIXTEEN_CORES.values(), *T4.values()])  # images a second
    unlike = unlike_rows()  # for one image each, as both sources say
    assert list(unlike["torch.compile"]) == ["yes", "no"] and list(unlike["batch"]) == [1, 1]
    assert unlike["images/s"].iloc[1] == 83  # NVIDIA's table of EfficientNet-B0 on a V100


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_neighbours_end_when_the_process_that_started_them_is_killed():
    code = (
        "import os, signal\n"
        "from course_lessons.device_speed.busy_neighbours import busy_neighbours\n"
        "with busy_neighbours():\n    print('busy', flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    python("-c", code, COURSE_TEST_NEIGHBOURS="1")
    end = time.monotonic() + 30
    while neighbours_of_this_test() and time.monotonic() < end:
        time.sleep(0.1)
    assert neighbours_of_this_test() == []


def neighbours_of_this_test():
    running = psutil.process_iter(["environ"])  # None for the processes of other users
    return [one for one in running if "COURSE_TEST_NEIGHBOURS" in (one.info["environ"] or {})]


def test_laps_add_up_by_their_names(monkeypatch):
    ticks, done = iter([0.0, 1.0, 3.0, 4.0]), []
    monkeypatch.setattr(lap_timer.time, "perf_counter", lambda: done.append("clock") or next(ticks))
    monkeypatch.setattr(lap_timer, "wait_for", lambda device: done.append(f"wait for {device}"))
    clock = lap_timer.LapTimer(pick_device("cpu"))
    for part in ("copy", "step", "copy"):
        clock.end(part)
    assert clock.seconds == {"copy": 2.0, "step": 2.0}
    assert done == ["clock", *["wait for cpu", "clock"] * 3]


@pytest.mark.parametrize("lesson", ["cpu", "gpu", "device_speed", "waiting"])
def test_each_step_that_is_timed_moves_the_weights_and_forgets_its_gradients(lesson, monkeypatch):
    image, label = torch.rand(4, 3, 32, 32), torch.zeros(4, dtype=torch.long)
    loss, cpu = torch.nn.functional.cross_entropy, pick_device("cpu")
    seen = []
    kept = torch.optim.Optimizer.add_param_group
    monkeypatch.setattr(
        torch.optim.Optimizer,
        "add_param_group",
        lambda self, group: kept(self, group) or seen.extend(self.param_groups[-1]["params"]),
    )
    if lesson == "cpu":
        step = _training_step(*air_windows())
    elif lesson == "gpu":
        pair, total = (torch.ones(4, 2), label), (lambda outputs, _: outputs.sum())
        step = own_step._training_step(torch.nn.Linear(2, 1), pair, total, cpu.torch_device, None)
    elif lesson == "device_speed":
        step = training_step(ImageCNN(), image, label, loss, cpu, "fp32")
    else:
        step = partial(make_step(), (image, None))
    before = [each.detach().clone() for each in seen]
    loss_of_it = step()
    assert loss_of_it is None or not loss_of_it.requires_grad  # it holds no graph
    moved = [(new.detach() - old).abs().max() for old, new in zip(before, seen, strict=True)]
    assert all(moved)
    if lesson != "waiting":  # Adam's first step is its learning rate: 0.001, as PyTorch's default
        assert max(moved) == pytest.approx(1e-3, rel=0.01)
    if lesson == "gpu":  # where the next step resets them
        step()
        assert seen[0].grad.tolist() == [[4, 4]]
    else:
        assert all(each.grad is None for each in seen)
