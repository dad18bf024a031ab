import os
import pickle
import re
import subprocess
import sys

import pytest
import torch
from course_lessons.data.models import AirRNN
from course_lessons.data.series import Scale, ShuffledBatches, air_passengers, make_windows
from course_lessons.lightning_training import EpochBar, Regression
from course_lessons.plain_training import train_plain
from course_lessons.progress_bars import epoch_bar
from torch.utils.data import DataLoader, TensorDataset

from course_utils import Device
from course_utils.lightning import QUIET, pl, trainer_kwargs
from course_utils.timing import using_threads

pytestmark = pytest.mark.process


SERIES = air_passengers()[0]
INPUTS, TARGETS = make_windows(Scale.fit(SERIES).apply(SERIES), 20)


@pytest.fixture(autouse=True)
def one_thread():
    with using_threads(1):
        yield


def plain_losses(epochs: int, seed: int = 42, **kwargs) -> tuple[list[float], AirRNN]:
    torch.manual_seed(seed)
    model = AirRNN()
    batches = ShuffledBatches(len(INPUTS), 16, seed=seed)
    return train_plain(model, INPUTS, TARGETS, batches=batches, epochs=epochs, **kwargs), model


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
def test_300_epochs_reach_the_loss_and_lightning_takes_the_same_way_there():
    plain, lightning = plain_losses(300)[0], lightning_losses(60)[0]
    assert (len(plain), len(lightning)) == (300, 60) and plain[-1] <= 0.0045
    assert lightning == pytest.approx(plain[:60], abs=1e-5) and plain[59] < plain[0] / 5


@pytest.mark.filterwarnings("ignore:.*does not have many workers.*")
@pytest.mark.parametrize("losses_of", [plain_losses, lightning_losses])
def test_a_seed_gives_the_same_losses_and_weights_to_the_last_digit(losses_of):
    (first, one), (second, two) = losses_of(5), losses_of(5)
    assert first == second
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert losses_of(5, seed=7)[0] != first


def test_the_loop_takes_the_steps_that_adam_with_defaults_takes():
    """The oracle is torch's default Adam in the barest loop; the course's loop uses the fused
    one.
    """
    mine, model = plain_losses(3)
    torch.manual_seed(42)
    other = AirRNN()
    optimizer = torch.optim.Adam(other.parameters(), lr=1e-3)
    theirs = []
    batches = ShuffledBatches(len(INPUTS), 16, seed=42)
    for _ in range(3):
        total = 0.0
        for index in batches:
            loss = ((other(INPUTS[index]) - TARGETS[index]) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(index)
        theirs.append(total / 101)
    assert mine == pytest.approx(theirs, abs=1e-6)
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=0)


def test_each_epoch_is_reported_as_it_ends():
    seen = []
    losses, _ = plain_losses(3, on_epoch=lambda epoch, loss: seen.append((epoch, loss)))
    assert seen == list(enumerate(losses, start=1))


def test_the_bar_ends_with_the_last_epoch_and_its_loss(capsys):
    show = epoch_bar(2)
    show(1, 0.5)
    show(2, 0.25)
    written = capsys.readouterr().err
    assert "2/2" in written and "loss 0.2500" in written and written.endswith("\n")


def test_the_cpu_arguments_make_a_cpu_trainer():
    trainer = pl.Trainer(**trainer_kwargs("cpu"), logger=False, enable_checkpointing=False)
    assert isinstance(trainer.accelerator, pl.accelerators.CPUAccelerator)
    assert trainer.num_devices == 1


def test_a_gpu_is_chosen_by_its_index():
    assert trainer_kwargs(Device("cuda", 3, "a GPU")) == {"accelerator": "cuda", "devices": [3]}


def test_a_trainer_on_an_intel_gpu_that_nobody_named_takes_the_cpu(monkeypatch):
    monkeypatch.delenv("COURSE_DEVICE", raising=False)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda *_: torch.device("xpu"))
    monkeypatch.setattr(torch.xpu, "device_count", lambda: 1)
    assert trainer_kwargs() == {"accelerator": "cpu", "devices": 1}
    with pytest.raises(NotImplementedError, match="cannot be pointed at xpu:0"):
        trainer_kwargs("xpu")


def test_a_missing_device_is_an_error_and_not_a_fallback():
    with pytest.raises(RuntimeError, match="'cuda:63' was requested"):
        trainer_kwargs("cuda:63")


def test_a_first_trainer_leaves_no_variable_and_writes_nothing_alarming():
    """In a new process, because Lightning and torch_xla do this once a process."""
    code = """
import os
from course_utils.lightning import messages_to_stdout, pl, trainer_kwargs
before = dict(os.environ)
messages_to_stdout()
pl.Trainer(**trainer_kwargs("cpu"), logger=True, enable_checkpointing=False)
chosen = ("PJRT_DEVICE", "CUDA_VISIBLE_DEVICES", "COURSE_DEVICE", "OMP_NUM_THREADS")
assert [os.environ.get(name) for name in chosen] == [before.get(name) for name in chosen]
"""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PJRT", "XLA", "COURSE"))
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=clean, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"GPU available: (True|False).*, used: False", done.stdout)
    assert "Tip:" not in done.stdout


@pytest.mark.filterwarnings("ignore:.*does not have many workers.*")  # the data is in memory
def test_an_error_before_the_first_step_is_shown_and_not_hidden_by_the_bar():
    class Broken(Regression):
        def configure_optimizers(self):
            raise ArithmeticError("no optimizer today")

    trainer = pl.Trainer(**trainer_kwargs("cpu"), max_epochs=1, callbacks=[EpochBar()], **QUIET)
    with pytest.raises(ArithmeticError, match="no optimizer today"):
        trainer.fit(Broken(AirRNN()), DataLoader(TensorDataset(INPUTS, TARGETS)))


def test_batches_that_can_be_gone_through_only_once_are_refused_in_the_second_epoch():
    batches = iter(list(ShuffledBatches(len(INPUTS), 16, seed=42)))
    with pytest.raises(ValueError, match="epoch 2 got no batch"):
        train_plain(AirRNN(), INPUTS, TARGETS, batches=batches, epochs=2)


def test_the_loss_of_an_epoch_is_the_mean_over_the_samples_that_it_saw():
    torch.manual_seed(0)
    model, some = AirRNN(), torch.arange(16)
    expected = torch.nn.functional.mse_loss(model(INPUTS[some]), TARGETS[some]).item()
    assert train_plain(model, INPUTS, TARGETS, batches=[some], epochs=1)[0] == pytest.approx(
        expected
    )


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


class Hostile:
    def __reduce__(self):
        return (pytest.fail, ("the code of a checkpoint was run",))


def test_lightning_itself_refuses_a_checkpoint_that_holds_code(tmp_path):
    torch.save(Hostile(), tmp_path / "forged.ckpt")
    loader = DataLoader(TensorDataset(INPUTS, TARGETS), batch_size=16)
    trainer = pl.Trainer(max_epochs=1, accelerator="cpu", **QUIET)
    with pytest.raises(pickle.UnpicklingError):
        trainer.fit(Regression(AirRNN()), loader, ckpt_path=tmp_path / "forged.ckpt")
