"""What a rank reports of an exception, whatever it is, in bounded length; and of its loss, whatever a batch is."""

from types import SimpleNamespace

import pytest
import torch
from torch.utils.data import DataLoader

from course_utils.launch.reporting import _Report, run_rank


class Notes:
    """Stands for the connection to the supervisor."""

    asked = None

    def __init__(self):
        self.events = []

    def open(self, otherwise):
        self.events.append({"hello": otherwise})

    def send(self, **event):
        self.events.append(event)


class Own(BaseException):
    pass


def fault_of(error) -> list[dict]:
    def fail():
        raise error

    notes = Notes()
    with pytest.raises(type(error)):
        run_rank(notes, fail)
    return [event for event in notes.events if "fault" in event]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no target"), "ValueError: no target"),
        (Own("mine"), "Own: mine"),
        (KeyboardInterrupt(), "KeyboardInterrupt: a person or another program sent it SIGINT"),
    ],
)
def test_every_exception_is_reported(error, said):
    (event,) = fault_of(error)
    assert event["error"] == said and "in fail" in event["fault"]


def test_an_exit_is_left_to_its_status():
    assert fault_of(SystemExit(0)) == []


def test_an_error_of_ten_million_characters_is_reported_in_a_bounded_length():
    (event,) = fault_of(ValueError("x" * 10**7))
    assert event["error"].startswith("ValueError: xxx") and len(event["error"]) < 1000
    assert len(event["fault"]) < 50_000


def test_a_function_that_returns_is_left_alone():
    notes = Notes()
    assert run_rank(notes, lambda a, b: a + b, 1, b=2) == 3 and notes.events == [{"hello": "rank 0"}]


def test_a_loss_is_weighed_by_the_samples_of_its_batch_whatever_class_that_is():
    loader = DataLoader(range(4), batch_size=3)
    notes, trainer = Notes(), SimpleNamespace(global_step=1, is_global_zero=True, train_dataloader=loader)
    module = SimpleNamespace(device="cpu", all_gather=lambda sums: sums)
    report = _Report(notes)
    report.on_train_start(SimpleNamespace(global_step=0, is_global_zero=False, optimizers=[]), module)
    report.on_train_epoch_start(trainer, module)
    for index, loss in enumerate((1.0, 5.0)):  # of three samples, and of one
        report.on_train_batch_end(trainer, module, torch.tensor(loss), object(), index)
    report.on_train_epoch_end(trainer, module)
    assert notes.events[-1] == {"epoch": 1, "loss": 2.0}


def test_a_rank_gives_a_sign_of_life_while_it_validates():
    notes = Notes()
    _Report(notes).on_validation_batch_start(SimpleNamespace(global_step=3), None, None, 0)
    assert notes.events == [{"step": 3, "where": "it validates"}]
