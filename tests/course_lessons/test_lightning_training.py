"""The same training with Lightning, compared with the plain loop, and its bar."""

import pytest
import torch
from course_lessons.data.models import AirRNN
from course_lessons.data.series import ShuffledBatches
from course_lessons.lightning_training import EpochBar, Regression
from torch.utils.data import DataLoader, TensorDataset

from course_utils.lightning import QUIET, pl, trainer_kwargs
from tests.course_lessons.test_plain_training import INPUTS, TARGETS, plain_losses

pytestmark = pytest.mark.usefixtures("one_thread")


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


@pytest.mark.filterwarnings("ignore:.*does not have many workers.*")
@pytest.mark.parametrize("losses_of", [plain_losses, lightning_losses])
def test_a_seed_gives_the_same_losses_and_weights_to_the_last_digit(losses_of):
    (first, one), (second, two) = losses_of(5), losses_of(5)
    assert first == second
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert losses_of(5, seed=7)[0] != first


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
