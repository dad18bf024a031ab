"""What a rank draws in each epoch, and what it says while it waits."""

import re
from types import SimpleNamespace

import pytest
import torch

from course_utils.launch.epoch_report import EpochReport, say_when_waiting
from course_utils.launch.request import Request


def drawn(rank, *, seed=1, epoch=0, resumed=False):
    """Return what a rank draws in an epoch: for the order of the samples, and for dropout."""
    report = EpochReport(Request("json:loads"), "cpu", seed)
    trainer = SimpleNamespace(current_epoch=0, global_rank=rank)
    if resumed:
        report.on_load_checkpoint(trainer, None, {"epoch": epoch - 1})
    report.on_fit_start(trainer, None)
    trainer.current_epoch = epoch
    report.on_train_epoch_start(trainer, None)
    order = torch.rand(3).tolist()
    report.on_train_batch_start(trainer, None, None, 0)
    return order, torch.rand(3).tolist()


def test_ranks_share_one_order_and_each_draws_masks_of_its_own():
    (order, masks), (other_order, other_masks) = drawn(0), drawn(1)
    assert order == other_order and masks != other_masks


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
    each, lines = iter(counts), []
    say_when_waiting("rank 1", lambda: next(each), sleep=lambda _: None, say=lines.append)
    assert len(lines) == len(words) and all(map(re.search, words, lines))
    assert NEVER not in words or "fewer batches" not in lines[0]  # nor are the data to blame
