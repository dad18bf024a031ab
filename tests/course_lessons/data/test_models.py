import math

import pytest
import torch
from course_lessons.data.models import AirRNN, count_parameters


def test_the_rnn_has_481_parameters():
    assert count_parameters(AirRNN()) == 481


def test_frozen_parameters_are_not_counted():
    model = AirRNN()
    model.head.requires_grad_(False)
    assert count_parameters(model) == 481 - 21


def test_the_rnn_computes_what_its_equations_say():
    """h_t = tanh(W_x x_t + b_x + W_h h_(t-1) + b_h); y_t = V h_t + c, written out with plain
    numbers.
    """
    torch.manual_seed(0)
    model = AirRNN(hidden_size=2)
    rnn = model.rnn
    inputs = torch.randn(1, 3, 1)
    hidden = [0.0, 0.0]
    for step in range(3):
        hidden = [
            math.tanh(
                rnn.weight_ih_l0[i, 0].item() * inputs[0, step, 0].item()
                + rnn.bias_ih_l0[i].item()
                + sum(rnn.weight_hh_l0[i, j].item() * hidden[j] for j in range(2))
                + rnn.bias_hh_l0[i].item()
            )
            for i in range(2)
        ]
        expected = (
            sum(model.head.weight[0, i].item() * hidden[i] for i in range(2))
            + model.head.bias.item()
        )
        assert model(inputs)[0, step, 0].item() == pytest.approx(expected, abs=1e-6)


def test_a_forecast_is_the_model_reading_its_own_answers():
    torch.manual_seed(0)
    model = AirRNN()
    history = torch.rand(20)
    known = history.tolist()
    for _ in range(5):  # without the remembered state: read everything again for each answer
        known.append(model(torch.tensor(known).view(1, -1, 1))[0, -1, 0].item())
    torch.testing.assert_close(model.forecast(history, 5), torch.tensor(known[20:]))


def test_a_forecast_keeps_no_gradients():
    assert not AirRNN().forecast(torch.rand(20), 3).requires_grad


@pytest.mark.parametrize(
    ("history", "steps"), [(torch.zeros(0), 3), (torch.zeros(2, 3), 3), (torch.zeros(5), 0)]
)
def test_a_forecast_of_nothing_is_refused(history, steps):
    with pytest.raises(ValueError, match=rf"got shape .*{history.shape[0]}.* and {steps} steps"):
        AirRNN().forecast(history, steps)
