"""A small training to launch.

`python -m course_utils.launch --training course_lessons.sample_training:air_rnn` runs it.
"""

from typing import Any

from torch.utils.data import DataLoader, TensorDataset

from course_lessons.data.models import AirRNN
from course_lessons.data.series import Scale, air_passengers, make_windows
from course_lessons.lightning_training import Regression


def air_rnn() -> tuple[Any, Any]:
    """Return the 481-parameter RNN and the windows of AirPassengers that it learns from."""
    series, _ = air_passengers()
    # A window of 25 months leaves 96 of them, which 1, 2, 3, 4, 6 or 8 ranks share evenly.
    windows = make_windows(Scale.fit(series).apply(series), 25)
    return Regression(AirRNN()), DataLoader(TensorDataset(*windows), batch_size=16, shuffle=True)
