"""What a rank draws in each epoch, and what it says while it waits."""

import random
import re
import signal
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy
import pytest
import torch

from course_utils.launch.epoch_report import EpochReport, say_when_waiting
from course_utils.launch.request import Request
from course_utils.launch.result import RunResult


def drawn(rank, *, seed=1, epoch=0, resumed=False):
    """Return what a rank draws in an epoch: for the order of the samples, and for dropout."""
    report = EpochReport(Request("json:loads"), "cpu", seed)
    trainer = SimpleNamespace(current_epoch=0, global_rank=rank)
    if resumed:
        report.on_load_checkpoint(trainer, None, {"epoch": epoch - 1})
    report.on_fit_start(trainer, None)
    trainer.current_epoch = epoch
    if not resumed:
        report.on_train_epoch_start(trainer, None)
    order = [*torch.rand(3).tolist(), numpy.random.rand(), random.random()]
    if resumed:  # Lightning asks the loader for the first epoch before it begins
        report.on_train_epoch_start(trainer, None)
    report.on_train_batch_start(trainer, None, None, 0)
    return order, torch.rand(3).tolist()


def test_ranks_share_one_order_and_each_draws_masks_of_its_own():
    (order, masks), (other_order, other_masks) = drawn(0), drawn(1)
    assert order == other_order
    assert len({*order, *masks, *other_masks}) == len(order) + len(masks) + len(other_masks)


@pytest.mark.parametrize("other", [{"seed": 2}, {"epoch": 1}, {"seed": 0, "epoch": 1}])
def test_another_seed_or_epoch_draws_other_numbers(other):
    assert not set(drawn(0, **other)[0]) & set(drawn(0)[0])


def test_a_resumed_epoch_draws_what_an_unbroken_one_does():
    assert drawn(1, epoch=2, resumed=True) == drawn(1, epoch=2)


def test_a_rank_without_a_batch_writes_neither_a_checkpoint_nor_a_result(tmp_path):
    report = EpochReport(Request("json:loads", out=str(tmp_path)), "cpu", 1)
    trainer = SimpleNamespace(is_global_zero=True)
    report.on_train_epoch_end(trainer, None)
    report.on_train_end(trainer, None)
    assert report.ended and not list(tmp_path.iterdir())


@pytest.mark.parametrize("zero", [True, False])
def test_rank_zero_prints_each_epoch_and_writes_a_result_of_what_was_trained(
    tmp_path, monkeypatch, capsys, zero
):
    request, saved = Request("json:loads", out=str(tmp_path), epochs=5), []
    report = EpochReport(request, "cpu", 1)
    report.load_state_dict({"losses": [0.5, 0.3]})
    trainer = SimpleNamespace(current_epoch=2, global_rank=0, world_size=1, optimizers=[])
    trainer.is_global_zero, trainer.save_checkpoint = zero, saved.append
    trainer.callback_metrics = {"train_loss": torch.tensor(0.25)}
    clock = iter([10.0, 12.5])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    report.on_train_start(trainer, None)
    report.on_train_batch_start(trainer, None, None, 0)
    report.on_train_epoch_end(trainer, None)
    report.on_train_end(trainer, None)
    assert saved == [request.checkpoint]  # by all ranks, as Lightning wants it
    assert capsys.readouterr().out == ("epoch 3/5: train_loss 0.25\n" if zero else "")
    assert request.result_file.exists() == zero
    if zero:
        expected = RunResult("json:loads", "ddp_spawn", "cpu", 1, [0.5, 0.3, 0.25], 2.5, "")
        found = RunResult.load(request.result_file)
        assert replace(found, checkpoint="") == expected
        assert found.checkpoint == str(request.checkpoint)


@pytest.mark.parametrize(("ranks", "watched"), [(1, False), (2, True)])
def test_a_rank_that_trains_ends_at_once_when_asked_and_says_if_it_waits_for_others(
    monkeypatch, ranks, watched
):
    trainer, started = SimpleNamespace(world_size=ranks, global_rank=1, optimizers=[]), []

    def thread(**given):
        return SimpleNamespace(start=lambda: started.append((given["args"][0], given["daemon"])))

    monkeypatch.setattr(threading, "Thread", thread)
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        EpochReport(Request("json:loads"), "cpu", 1).on_train_start(trainer, None)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)
    assert started == [("rank 1", True)] * watched


FEWER, NEVER = "rank 1 has begun 3 batches.*fewer batches", "rank 1 has begun 0 batches"


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((0, 1, 2, 5, None), []),  # it makes progress
        ((5, None), []),  # it has ended
        ((0, 3, 3, 3, 3, None), [FEWER]),
        ((3, 3, 3, 4, 4, None), [FEWER, "rank 1 has begun 4 batches"]),
        ((0, 0, None), [NEVER]),
    ],
)
def test_a_rank_that_waits_says_so_once_each_time_and_why(counts, words):
    """Of a rank that has begun so many batches, minute by minute."""
    each, lines, slept = iter(counts), [], []
    say_when_waiting("rank 1", lambda: next(each), sleep=slept.append, say=lines.append)
    assert slept == [60] * (len(counts) - 1)
    assert len(lines) == len(words) and all(map(re.search, words, lines))
    assert NEVER not in words or "fewer batches" not in lines[0]  # nor are the data to blame
