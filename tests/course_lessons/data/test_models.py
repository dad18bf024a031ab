import pytest
import torch
from course_lessons.data.models import AirRNN, count_parameters


def test_the_rnn_has_481_parameters():
    assert count_parameters(AirRNN()) == 481


def test_a_forecast_is_the_model_reading_its_own_answers():
    torch.manual_seed(0)
    model = AirRNN()
    history = torch.rand(20)
    known = history.tolist()
    for _ in range(5):  # without the remembered state: read everything again for each answer
        known.append(model(torch.tensor(known).view(1, -1, 1))[0, -1, 0].item())
    torch.testing.assert_close(model.forecast(history, 5), torch.tensor(known[20:]))


@pytest.mark.parametrize(
    ("history", "steps"), [(torch.zeros(0), 3), (torch.zeros(2, 3), 3), (torch.zeros(5), 0)]
)
def test_a_forecast_of_nothing_is_refused(history, steps):
    with pytest.raises(ValueError, match=rf"got shape .*{history.shape[0]}.* and {steps} steps"):
        AirRNN().forecast(history, steps)
