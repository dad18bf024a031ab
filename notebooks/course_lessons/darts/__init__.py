"""What lesson 8 needs beside the helper package: the RNN of Darts' guide, in Darts and as a plain
network, and a model that is large enough for a GPU. Only the network moves between Darts'
`pytorch_lightning` and `lightning.pytorch`."""

from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader

from course_lessons.exercises.progress import progress
from course_lessons.needs import what_cells_need
from course_lessons.worth_it.pictures import draw_crossover
from course_utils.data.series import AIR_PASSENGERS
from course_utils.estimate import count_work, find_chip, step_time
from course_utils.figures import LOOKS, MUTED, label_end, lecture_axes, picture
from course_utils.lightning import QUIET, trainer_kwargs
from course_utils.xla import start_xla, xla_problem

# The arguments of the guide, less its logs on disk.
GUIDE: dict[str, Any] = {
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


def darts_problem() -> str | None:
    """Return a sentence on why Darts cannot be used here and what helps, or None when it can."""
    try:
        import darts.models
    except ImportError as error:
        how = "%run -m course_lessons.setup darts (Python 3.11+)"
        return f"Darts is not here ({error}). Add it: {how}."
    return None


def air_series() -> tuple[Any, Any]:
    """Return AirPassengers as two Darts TimeSeries, 121 months to train on and 23 to forecast, as
    float32.
    """
    from darts import TimeSeries

    months = pd.date_range("1949-01", periods=len(AIR_PASSENGERS), freq="MS")
    series = TimeSeries.from_times_and_values(months, np.array(AIR_PASSENGERS, dtype=np.float32))
    return series[:121], series[121:]


def untrained(**changes: Any) -> Any:
    """Return the guide's RNNModel, with these arguments changed, as `fit` begins: its network made,
    but not trained.
    """
    import pytorch_lightning
    from darts.dataprocessing.transformers import Scaler
    from darts.models import RNNModel

    off = {**QUIET, "limit_train_batches": 0, **trainer_kwargs("cpu", package=pytorch_lightning)}
    model = RNNModel(**{**GUIDE, "n_epochs": 1, **changes}, pl_trainer_kwargs=off)
    return model.fit(Scaler().fit_transform(air_series()[0]))


class DartsNetwork(nn.Module):
    """The network of the guide's RNNModel, its `.model`, as a plain module: each loads the state
    dict of the other.
    """

    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(input_size=1, hidden_size=GUIDE["hidden_dim"], batch_first=True)
        self.V = nn.Linear(GUIDE["hidden_dim"], 1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Map values, (batch, steps, 1), to the values one step later, of the same shape."""
        return self.V(self.rnn(inputs)[0])


def darts_order(samples: int, batch_size: int, seed: int) -> DataLoader:
    """Return the batches of sample indices that Darts takes when its DataLoader gets a generator
    with this seed.
    """
    # Darts numbers its windows from the end of the series
    numbers: Any = torch.arange(samples - 1, -1, -1)
    return DataLoader(
        numbers, batch_size, shuffle=True, generator=torch.Generator().manual_seed(seed)
    )


def many_series(count: int = 100, days: int = 400) -> list[Any]:
    """Return daily series with a week and a year in them, and noise, as Darts TimeSeries of
    float32.
    """
    from darts import TimeSeries

    dates, day = pd.date_range("2024-01-01", periods=days, freq="D"), np.arange(days)
    noise = np.random.default_rng(0).normal(0, 0.2, (count, days))
    shift = np.linspace(0, 7, count)[:, None]
    values = np.sin(2 * np.pi * (day + shift) / 7) + np.sin(2 * np.pi * day / 365) + noise
    return [TimeSeries.from_times_and_values(dates, each.astype(np.float32)) for each in values]


class Forecaster(nn.Module):
    """The network of a fitted Darts model as a module that takes tensors, for whoever times it or
    counts its work.
    """

    def __init__(self, model: Any):
        super().__init__()
        self.network = model.model

    def forward(self, **window: torch.Tensor) -> torch.Tensor:
        """Map windows, as `one_window` gives them, to (batch, steps out, components, values for
        each component).
        """
        from darts.utils.data import ModuleStage, PLModuleInput

        stage = ModuleStage.TRAIN if self.training else ModuleStage.PREDICT
        return self.network(PLModuleInput(**window, stage=stage)).prediction


def one_window(model: Any) -> dict[str, torch.Tensor]:
    """Return a window that a Darts model was fitted on, with its covariates, as the arguments of
    its `Forecaster`.
    """
    seen = next(iter(model.trainer.train_dataloader)).to_module_input()
    found = {each.name: getattr(seen, each.name) for each in fields(seen)}
    return {name: value[:1] for name, value in found.items() if torch.is_tensor(value)}
