"""The RNN of Darts' guide: in Darts, as a plain network, and as a lesson for the launcher.

Darts trains with `pytorch_lightning`, and the rest of this course with `lightning.pytorch`: the same code under two
names, whose objects do not fit each other. What the two share is the network, and that is what moves between them.
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from course_utils.data.series import AIR_PASSENGERS, TRAIN_MONTHS, Scale, air_passengers, make_windows
from course_utils.lessons import skipping

# The arguments of the guide, less its logs on disk.
GUIDE = {
    "model": "RNN",
    "hidden_dim": 20,
    "dropout": 0,
    "batch_size": 16,
    "n_epochs": 300,
    "optimizer_kwargs": {"lr": 1e-3},
    "random_state": 42,
    "training_length": 20,
    "input_chunk_length": 14,
}
QUIET = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}


def darts_problem() -> str | None:
    """Say in one sentence why Darts cannot be used here and what helps, or return None when it can."""
    try:
        import darts.models  # noqa: F401
    except ImportError as error:
        return f"Darts is not here ({error}). Add it: !python -m course_utils.lessons.setup darts (Python 3.11+)."
    return None


def skip_cells(mark: str, problem: str | None) -> None:
    """Where there is a problem, let each later cell of a notebook whose first line is `mark` say so instead."""
    skipping.skip_cells(mark, problem and f"This cell was left out. {problem}")


def air_series():
    """Return AirPassengers as two Darts TimeSeries, 121 months to train on and 23 to forecast, as float32."""
    import numpy as np
    import pandas as pd
    from darts import TimeSeries

    months = pd.date_range("1949-01", periods=len(AIR_PASSENGERS), freq="MS")
    series = TimeSeries.from_times_and_values(months, np.array(AIR_PASSENGERS, dtype=np.float32))
    return series[:TRAIN_MONTHS], series[TRAIN_MONTHS:]


def untrained(**changes):
    """Return the guide's RNNModel with its network made and not trained.

    Darts makes the network in `fit`, so this fits on no batches.

    Args:
        changes: other arguments for `RNNModel`.
    """
    import pytorch_lightning
    from darts.dataprocessing.transformers import Scaler
    from darts.models import RNNModel

    from course_utils.training import trainer_kwargs

    train, _ = air_series()
    off = {**QUIET, "limit_train_batches": 0, **trainer_kwargs("cpu", package=pytorch_lightning)}
    model = RNNModel(**{**GUIDE, "n_epochs": 1, **changes}, pl_trainer_kwargs=off)
    return model.fit(Scaler().fit_transform(train))


class DartsNetwork(nn.Module):
    """The network inside the guide's RNNModel as a plain module, under Darts' names for its parts.

    `network.load_state_dict(model.model.state_dict())` takes the weights out of an RNNModel, and
    `model.model.load_state_dict(network.state_dict())` puts them back.
    """

    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(input_size=1, hidden_size=GUIDE["hidden_dim"], batch_first=True)
        self.V = nn.Linear(GUIDE["hidden_dim"], 1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Map values, (batch, steps, 1), to the values one step later, of the same shape."""
        hidden, _ = self.rnn(inputs)
        return self.V(hidden)


def air_darts():
    """Return the guide's network and windows as a lesson for the launcher: `--lesson .../darts_lesson.py:air_darts`.

    The processes that train it do not import Darts, which would cost each of them seconds.
    """
    from course_utils.training import Regression

    series, _ = air_passengers()
    windows = make_windows(Scale.fit(series).apply(series), GUIDE["training_length"])
    return Regression(DartsNetwork()), TensorDataset(*windows)


def darts_order(samples: int, batch_size: int, seed: int) -> DataLoader:
    """Return the batches of sample indices that Darts takes when its DataLoader gets a generator with this seed.

    Darts numbers its windows from the end of the series.
    """
    numbers = torch.arange(samples - 1, -1, -1)
    return DataLoader(numbers, batch_size, shuffle=True, generator=torch.Generator().manual_seed(seed))
