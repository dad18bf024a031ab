"""What a rank reports of an exception, whatever it is, in bounded length; and of its loss, whatever a batch is."""

from types import SimpleNamespace

import pytest
import torch
from torch.utils.data import DataLoader

from course_utils.launch.clusters import Cluster
from course_utils.launch.messages import calm_lightning
from course_utils.launch.options import Options, trainer_arguments
from course_utils.launch.ranks import _make_trainer
from course_utils.launch.reporting import _Report, run_rank
from course_utils.training import pl, trainer_kwargs


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
    notes, quiet = Notes(), {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    calm_lightning()
    trainer = pl.Trainer(
        **trainer_kwargs("cpu"), max_epochs=2, callbacks=[_Report(notes)], enable_checkpointing=False, **quiet
    )
    trainer.fit(TwoOptimizers(), DataLoader(torch.ones(10, 1), batch_size=4))
    (done,) = [event["done"] for event in notes.events if "done" in event]
    assert {"epoch": 2, "loss": None} in notes.events and done["losses"] == [None, None]
    assert done["samples_per_rank"] == [10] and done["samples_per_s"] > 0
    assert done["steps"] == 2 * 2 * 3  # optimizers, epochs and batches


def test_a_batch_without_a_loss_has_no_weight_in_the_loss_of_its_epoch():
    notes = Notes()
    trainer = SimpleNamespace(
        global_step=1, is_global_zero=True, train_dataloader=DataLoader(range(9), batch_size=3), optimizers=[]
    )
    module = SimpleNamespace(device="cpu", all_gather=lambda sums: sums)
    report = _Report(notes)
    report.on_train_start(SimpleNamespace(global_step=0, is_global_zero=False, optimizers=[]), module)
    report.on_train_epoch_start(trainer, module)
    for index, outputs in enumerate((torch.tensor(1.0), None, {"loss": torch.tensor(3.0)})):
        report.on_train_batch_end(trainer, module, outputs, object(), index)
    report.on_train_epoch_end(trainer, module)
    assert notes.events[-1] == {"epoch": 1, "loss": 2.0} and report._samples == [9]


def test_a_rank_gives_a_sign_of_life_while_it_validates():
    notes = Notes()
    _Report(notes).on_validation_batch_start(SimpleNamespace(global_step=3), None, None, 0)
    assert notes.events == [{"step": 3, "where": "it validates"}]


class OwnCallbacks(TwoOptimizers):
    """Saves its best, and stops after an epoch."""

    def configure_callbacks(self):
        return [pl.callbacks.ModelCheckpoint("best"), pl.callbacks.EarlyStopping("loss", patience=0, min_delta=9.0)]

    def on_train_epoch_end(self):
        self.log("loss", 1.0)


def test_a_lessons_own_checkpoints_and_its_early_end_leave_one_to_resume_from(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    calm_lightning()
    options, notes, module = Options("", accelerator="cpu", epochs=5, out="out"), Notes(), OwnCallbacks()
    trainer = _make_trainer(options, trainer_arguments(options, Cluster()), notes, module)
    trainer.fit(module, DataLoader(torch.ones(10, 1), batch_size=4))
    assert options.checkpoint.exists() and list((tmp_path / "best").iterdir())
    assert {"stopped": 2} in notes.events
