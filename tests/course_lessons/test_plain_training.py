"""The loop in plain PyTorch, compared with the barest loop that there is."""

import pytest
import torch
from course_lessons.data.models import AirRNN
from course_lessons.data.series import Scale, ShuffledBatches, air_passengers, make_windows
from course_lessons.plain_training import train_plain

pytestmark = pytest.mark.usefixtures("one_thread")

SERIES = air_passengers()[0]
INPUTS, TARGETS = make_windows(Scale.fit(SERIES).apply(SERIES), 20)


def plain_losses(epochs: int, seed: int = 42, **kwargs) -> tuple[list[float], AirRNN]:
    torch.manual_seed(seed)
    model = AirRNN()
    batches = ShuffledBatches(len(INPUTS), 16, seed=seed)
    return train_plain(model, INPUTS, TARGETS, batches=batches, epochs=epochs, **kwargs), model


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
