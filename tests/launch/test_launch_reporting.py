"""What a rank reports of an exception, whatever it is, in bounded length; and of its loss, whatever
a batch is.
"""

import sys
from types import SimpleNamespace

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from course_utils.launch.clusters import Cluster
from course_utils.launch.messages import calm_lightning
from course_utils.launch.options import Options, trainer_arguments
from course_utils.launch.ranks import _make_trainer, fit
from course_utils.launch.reporting import _Report, run_rank
from course_utils.lightning import Regression, pl, trainer_kwargs


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
    assert run_rank(notes, lambda a, b: a + b, 1, b=2) == 3 and notes.events == [
        {"hello": "rank 0"}
    ]


def test_a_loss_is_weighed_by_the_samples_of_its_batch_whatever_class_that_is():
    loader = DataLoader(range(4), batch_size=3)
    counts = {"global_step": 1, "num_training_batches": 2}
    notes, trainer = (
        Notes(),
        SimpleNamespace(**counts, is_global_zero=True, train_dataloader=loader),
    )
    module = SimpleNamespace(device="cpu", all_gather=lambda sums: sums)
    report = _Report(notes)
    report.on_train_start(SimpleNamespace(global_step=0, is_global_zero=False), module)
    report.on_train_epoch_start(trainer, module)
    for index, loss in enumerate((1.0, 5.0)):  # of three samples, and of one
        report.on_train_batch_end(trainer, module, torch.tensor(loss), object(), index)
    report.on_train_epoch_end(trainer, module)
    assert notes.events[-1] == {"epoch": 1, "loss": 2.0}


class TwoOptimizers(pl.LightningModule):
    """Optimizes by hand, and so returns no loss."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.models = torch.nn.ModuleList([torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)])

    def training_step(self, batch, index):
        for model, optimizer in zip(self.models, self.optimizers(), strict=True):
            optimizer.zero_grad()
            self.manual_backward(model(batch).square().mean())
            optimizer.step()

    def configure_optimizers(self):
        return [torch.optim.SGD(model.parameters(), 0.1) for model in self.models]


def test_the_samples_of_a_training_step_that_returns_no_loss_are_counted():
    notes, quiet = (
        Notes(),
        {"logger": False, "enable_progress_bar": False, "enable_model_summary": False},
    )
    calm_lightning()
    trainer = pl.Trainer(
        **trainer_kwargs("cpu"),
        max_epochs=2,
        callbacks=[_Report(notes)],
        enable_checkpointing=False,
        **quiet,
    )
    trainer.fit(TwoOptimizers(), DataLoader(torch.ones(10, 1), batch_size=4))
    (done,) = [event["done"] for event in notes.events if "done" in event]
    assert {"epoch": 2, "loss": None} in notes.events and done["losses"] == [None, None]
    assert done["samples_per_rank"] == [10] and done["samples_per_s"] > 0
    assert done["steps"] == 2 * 2 * 3  # optimizers, epochs and batches
    assert {"start": {"steps": done["steps"], "done": 0, "epochs": 2}} in notes.events


def test_a_batch_without_a_loss_has_no_weight_in_the_loss_of_its_epoch():
    notes = Notes()
    trainer = SimpleNamespace(
        global_step=1,
        is_global_zero=True,
        train_dataloader=DataLoader(range(9), batch_size=3),
        num_training_batches=3,
    )
    module = SimpleNamespace(device="cpu", all_gather=lambda sums: sums)
    report = _Report(notes)
    report.on_train_start(SimpleNamespace(global_step=0, is_global_zero=False), module)
    report.on_train_epoch_start(trainer, module)
    for index, outputs in enumerate((torch.tensor(1.0), None, {"loss": torch.tensor(3.0)})):
        report.on_train_batch_end(trainer, module, outputs, object(), index)
    report.on_train_epoch_end(trainer, module)
    assert notes.events[-1] == {"epoch": 1, "loss": 2.0} and report._samples == [9]


def test_a_rank_gives_a_sign_of_life_while_it_validates():
    notes = Notes()
    _Report(notes).on_validation_batch_start(SimpleNamespace(global_step=3), None, None, 0)
    assert notes.events == [
        {"step": 3, "where": "it validates, or waits for other ranks after that"}
    ]


class OwnCallbacks(TwoOptimizers):
    """Saves its best, and stops after an epoch."""

    def configure_callbacks(self):
        return [
            pl.callbacks.ModelCheckpoint("best"),
            pl.callbacks.EarlyStopping("loss", patience=0, min_delta=9.0),
        ]

    def on_train_epoch_end(self):
        self.log("loss", 1.0)


def test_a_lessons_own_checkpoints_and_its_early_end_leave_one_to_resume_from(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    calm_lightning()
    options, notes, module = (
        Options("", accelerator="cpu", epochs=5, out="out"),
        Notes(),
        OwnCallbacks(),
    )
    trainer = _make_trainer(options, trainer_arguments(options, Cluster()), notes, module)
    trainer.fit(module, DataLoader(torch.ones(10, 1), batch_size=4))
    assert options.checkpoint.exists() and list((tmp_path / "best").iterdir())
    assert {"note": "the lesson has ended the training early, after epoch 2"} in notes.events


class Raises(Regression):
    """Meets the end of an iterator of its own, in the first step of the second epoch."""

    def training_step(self, batch, index):
        return (
            next(iter(()))
            if self.current_epoch == 1 and index == 0
            else super().training_step(batch, index)
        )

    def on_train_epoch_end(self):
        pass


def test_an_epoch_that_stop_iteration_has_ended_is_said_to_have_ended_early():
    notes, quiet = (
        Notes(),
        {"logger": False, "enable_progress_bar": False, "enable_model_summary": False},
    )
    calm_lightning()
    loader = DataLoader(TensorDataset(torch.ones(10, 1), torch.ones(10, 1)), batch_size=4)
    trainer = pl.Trainer(
        **trainer_kwargs("cpu"),
        max_epochs=2,
        callbacks=[_Report(notes)],
        enable_checkpointing=False,
        **quiet,
    )
    trainer.fit(Raises(torch.nn.Linear(1, 1)), loader)
    (said,) = [event["note"] for event in notes.events if "note" in event]
    assert said.startswith("epoch 2 ended after batch 0 of 3: ") and "StopIteration" in said


LOGGING = """
import torch
from course_utils.lightning import Regression, pl
from torch.utils.data import TensorDataset

class Logs(Regression):
    def configure_callbacks(self):
        return [pl.callbacks.LearningRateMonitor("step")]

def make_lesson():
    return Logs(torch.nn.Linear(1, 1)), TensorDataset(torch.ones(32, 1), torch.ones(32, 1))
"""


def test_what_a_lesson_logs_is_in_the_folder_and_a_resumed_run_keeps_what_was_logged_before(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(sys, "path", list(sys.path))
    lesson, out = tmp_path / "a_lesson_that_logs.py", tmp_path / "out"
    lesson.write_text(LOGGING)
    for epochs, resume in ((1, False), (2, True)):
        options = Options(
            f"{lesson}:make_lesson", accelerator="cpu", epochs=epochs, out=str(out), resume=resume
        )
        fit(options, trainer_arguments(options, Cluster()), Notes())
    heads = [
        (out / name).read_text().splitlines()[0]
        for name in ("metrics.csv", "metrics-to-step-2.csv")
    ]
    assert all("lr-Adam" in head and "train_loss" in head for head in heads)
    (out / "metrics-to-step-4.csv").write_text("kept by the rank that was first")
    options = Options(
        f"{lesson}:make_lesson", accelerator="cpu", epochs=3, out=str(out), resume=True
    )
    fit(options, trainer_arguments(options, Cluster()), Notes())
    assert (out / "metrics-to-step-4.csv").read_text() == "kept by the rank that was first"


@pytest.mark.parametrize("by_hand", [True, False])
def test_a_module_that_optimizes_by_hand_may_train_a_part_of_itself_at_a_time(by_hand, tmp_path):
    options, module = (
        Options("", accelerator="cpu", devices=2, strategy="ddp", out=str(tmp_path)),
        TwoOptimizers(),
    )
    module.automatic_optimization = not by_hand
    trainer = _make_trainer(options, trainer_arguments(options, Cluster()), Notes(), module)
    assert trainer.strategy._ddp_kwargs["find_unused_parameters"] == by_hand
