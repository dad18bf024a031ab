"""A training with Lightning, compared with the barest loop that there is, and its bar."""

import pytest
import torch
from course_lessons import lightning_training
from course_lessons.data.models import AirRNN
from course_lessons.data.series import Scale, ShuffledBatches, air_passengers, make_windows
from course_lessons.fast_adam import fast_adam
from course_lessons.lightning_training import EpochBar, Regression
from torch.utils.data import DataLoader, TensorDataset

from course_utils.lightning import QUIET, pl, trainer_kwargs

pytestmark = pytest.mark.usefixtures("one_thread")


SERIES = air_passengers()[0]
INPUTS, TARGETS = make_windows(Scale.fit(SERIES).apply(SERIES), 20)


def plain_losses(epochs: int, seed: int = 42) -> tuple[list[float], AirRNN]:
    """Train with torch's default Adam, where the course's is the fused one."""
    torch.manual_seed(seed)
    model, losses = AirRNN(), []
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    batches = ShuffledBatches(len(INPUTS), 16, seed=seed)
    for _ in range(epochs):
        total = 0.0
        for index in batches:
            loss = ((model(INPUTS[index]) - TARGETS[index]) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(index)
        losses.append(total / len(INPUTS))
    return losses, model


@pytest.mark.parametrize(("device", "fused"), [("cpu", True), ("cuda", True), ("xla", False)])
def test_adam_makes_one_call_for_all_parameters_where_the_device_has_one(
    device, fused, monkeypatch
):
    made = {}
    monkeypatch.setattr(torch.optim, "Adam", lambda parameters, **how: made.update(how))
    fast_adam([], torch.device(device))
    assert made == {"foreach": not fused, "fused": fused}


def lightning_losses(epochs: int, seed: int = 42) -> tuple[list[float], AirRNN]:
    torch.manual_seed(seed)
    module, bar = Regression(AirRNN()), EpochBar()
    trainer = pl.Trainer(**trainer_kwargs("cpu"), max_epochs=epochs, callbacks=[bar], **QUIET)
    batches = ShuffledBatches(len(INPUTS), 16, seed=seed)
    trainer.fit(
        module, DataLoader(TensorDataset(INPUTS, TARGETS), sampler=batches, batch_size=None)
    )
    return bar.losses, module.model


@pytest.mark.filterwarnings("ignore:.*does not have many workers.*")  # the data is in memory
def test_the_loss_falls_and_lightning_takes_the_same_way_there():
    plain, lightning = plain_losses(60)[0], lightning_losses(20)[0]
    assert len(plain) == 60 and plain[-1] < plain[0] / 5
    assert lightning == pytest.approx(plain[:20], abs=1e-5)


def test_the_loss_that_is_logged_is_the_mean_over_samples_and_over_ranks(monkeypatch):
    logged, module = [], Regression(torch.nn.Identity())
    monkeypatch.setattr(module, "log", lambda *what, **how: logged.append((*what, how)))
    monkeypatch.setattr(lightning_training, "run_recorded", logged.append)
    module.on_train_epoch_start()
    for rows, target in ((torch.zeros(3, 1), 1.0), (torch.zeros(1, 1), 3.0)):
        module.training_step((rows, torch.full_like(rows, target)), 0)
    module.on_train_epoch_end()
    assert logged.pop(0) == module.device  # before an epoch, what was recorded is run
    assert logged == [("train_loss", (3 * 1 + 1 * 9) / 4, {"sync_dist": True})]


@pytest.mark.filterwarnings("ignore:.*does not have many workers.*")
def test_a_seed_gives_the_same_losses_and_weights_to_the_last_digit():
    (first, one), (second, two) = lightning_losses(5), lightning_losses(5)
    assert first == second
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert lightning_losses(5, seed=7)[0] != first


@pytest.mark.filterwarnings("ignore:.*does not have many workers.*")  # the data is in memory
def test_an_error_before_the_first_step_is_shown_and_not_hidden_by_the_bar():
    class Broken(Regression):
        def configure_optimizers(self):
            raise ArithmeticError("no optimizer today")

    trainer = pl.Trainer(**trainer_kwargs("cpu"), max_epochs=1, callbacks=[EpochBar()], **QUIET)
    with pytest.raises(ArithmeticError, match="no optimizer today"):
        trainer.fit(Broken(AirRNN()), DataLoader(TensorDataset(INPUTS, TARGETS)))


@pytest.mark.filterwarnings("ignore:.*does not have many workers.*")
def test_the_bar_of_a_resumed_training_goes_on_where_the_first_one_ended(tmp_path):
    loader = DataLoader(TensorDataset(INPUTS, TARGETS), batch_size=16)
    bars = [EpochBar(), EpochBar()]
    for epochs, bar in zip((2, 4), bars, strict=True):
        trainer = pl.Trainer(**trainer_kwargs("cpu"), max_epochs=epochs, callbacks=[bar], **QUIET)
        last = tmp_path / "last.ckpt"
        trainer.fit(Regression(AirRNN()), loader, ckpt_path=last if last.exists() else None)
        trainer.save_checkpoint(last)
    assert [len(bar.losses) for bar in bars] == [2, 2] and bars[1]._bar.n == 4
