"""The forecasters of lesson 10: the RNN of Darts' guide, N-HiTS, and a TFT as large as NVIDIA's."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from course_lessons.data.series import AIR_PASSENGERS
from course_tools.estimate import Chip, count_work, step_time
from course_tools.estimate.time.step_time import StepTime
from course_utils import time_call
from course_utils.lightning import QUIET

# The arguments of the guide, without its logs on disk.
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
ALL_THREADS = torch.get_num_threads()  # the default, before a lesson sets fewer
# Enough to make the network of a Darts model: it does not exist before `fit`.
ONE_BATCH = {**QUIET, "accelerator": "cpu", "limit_train_batches": 1}


@dataclass(frozen=True)
class PublishedRate:
    """The windows per second that a forecaster trained on, as published."""

    device: str
    gpus: int
    precision: str
    windows_per_s: float


# NVIDIA's Temporal Fusion Transformer on the electricity data, 1,024 windows in the batch of each
# GPU, PyTorch 21.06 container, November 2021. Source: NVIDIA/DeepLearningExamples,
# PyTorch/Forecasting/TFT/README.md at commit 3d3250a, "Training performance results": DGX A100
# (A100 80GB) and DGX-1 (V100 16GB). "fp16" is the README's mixed precision.
PUBLISHED_TFT = (
    PublishedRate("V100", 1, "fp32", 5580),
    PublishedRate("V100", 1, "fp16", 9148),
    PublishedRate("A100", 1, "tf32", 10173),
    PublishedRate("A100", 1, "fp16", 13703),
    PublishedRate("V100", 8, "fp32", 43351),
    PublishedRate("V100", 8, "fp16", 69855),
    PublishedRate("A100", 8, "tf32", 80596),
    PublishedRate("A100", 8, "fp16", 107761),
)


def darts_problem() -> str | None:
    """Return a sentence on why Darts cannot be used here and what helps, or None when it can."""
    try:
        import darts.models  # noqa: F401
    except ImportError as error:
        how = 'set_up("darts") (Python 3.11+)'
        return f"Darts is not here ({error}). Add it: {how}."
    return None


def air_series() -> tuple[Any, Any]:
    """Return AirPassengers as Darts series of float32: 121 months to train on, 23 to forecast."""
    from darts import TimeSeries

    months = pd.date_range("1949-01", periods=len(AIR_PASSENGERS), freq="MS")
    series = TimeSeries.from_times_and_values(months, np.array(AIR_PASSENGERS, dtype=np.float32))
    return series[:121], series[121:]


def many_series(count: int = 100, days: int = 400) -> list[Any]:
    """Return daily series with a week, a year and noise in them, as Darts series of float32."""
    from darts import TimeSeries

    dates, day = pd.date_range("2024-01-01", periods=days, freq="D"), np.arange(days)
    noise = np.random.default_rng(0).normal(0, 0.2, (count, days))
    shift = np.linspace(0, 7, count)[:, None]
    values = np.sin(2 * np.pi * (day + shift) / 7) + np.sin(2 * np.pi * day / 365) + noise
    return [TimeSeries.from_times_and_values(dates, each.astype(np.float32)) for each in values]


def guide_rnn() -> Any:
    """Return the guide's RNNModel, fitted on one batch."""
    from darts.models import RNNModel

    train, _ = air_series()
    return RNNModel(**{**GUIDE, "n_epochs": 1}, pl_trainer_kwargs=ONE_BATCH).fit(train / 500)


def nhits(series: list[Any], batch_size: int = 1024) -> Any:
    """Return an N-HiTS model that reads 56 days and forecasts 14, fitted on one batch."""
    from darts.models import NHiTSModel

    options = {"batch_size": batch_size, "n_epochs": 1, "random_state": 42}
    return NHiTSModel(56, 14, **options, pl_trainer_kwargs=ONE_BATCH).fit(series)


def nvidia_tft() -> Any:
    """Return a TFTModel as large as NVIDIA's for electricity, fitted on one small batch.

    It reads 168 hours and forecasts 24, with three covariates that are known in advance and one
    meter in 369. Source: `ElectricityConfig` in configuration.py beside the README above.
    """
    from darts import TimeSeries
    from darts.models import TFTModel
    from darts.utils.likelihood_models.torch import QuantileRegression

    hours = pd.date_range("2024-01-01", periods=216, freq="h")
    noise = np.random.default_rng(0).random((216, 4), dtype=np.float32)
    meter = pd.DataFrame({"meter": np.zeros(1, np.float32)})
    usage = TimeSeries.from_times_and_values(hours, noise[:, :1]).with_static_covariates(meter)
    known = TimeSeries.from_times_and_values(hours, noise[:, 1:])
    model = TFTModel(
        input_chunk_length=168,
        output_chunk_length=24,
        hidden_size=128,
        hidden_continuous_size=128,
        num_attention_heads=4,
        dropout=0.1,
        categorical_embedding_sizes={"meter": (369, 128)},
        likelihood=QuantileRegression([0.1, 0.5, 0.9]),
        batch_size=8,
        n_epochs=1,
        random_state=42,
        pl_trainer_kwargs=ONE_BATCH,
    )
    return model.fit(usage, future_covariates=known)


class Forecaster(nn.Module):
    """The network of a fitted Darts model, as a module that takes tensors."""

    def __init__(self, model: Any):
        super().__init__()
        self.network = model.model

    def forward(self, **window: torch.Tensor) -> torch.Tensor:
        """Map windows, as `one_window` returns them, to forecasts.

        Returns:
            (batch, steps, components, values of each component).
        """
        from darts.utils.data import ModuleStage, PLModuleInput

        stage = ModuleStage.TRAIN if self.training else ModuleStage.PREDICT
        return self.network(PLModuleInput(**window, stage=stage)).prediction


def one_window(model: Any) -> dict[str, torch.Tensor]:
    """Return one window of a fitted Darts model, as the arguments of its `Forecaster`."""
    seen = next(iter(model.trainer.train_dataloader)).to_module_input()
    found = {each.name: getattr(seen, each.name) for each in fields(seen)}
    return {name: value[:1] for name, value in found.items() if torch.is_tensor(value)}


def training_step(model: Any, batch: int) -> Callable[[], None]:
    """Return a training step of a fitted Darts model on a batch of copies of one window."""
    network = Forecaster(model).train()
    optimizer = torch.optim.Adam(network.parameters())
    windows = {name: value.repeat(batch, 1, 1) for name, value in one_window(model).items()}

    def step() -> None:
        optimizer.zero_grad()
        network(**windows).square().mean().backward()
        optimizer.step()

    return step


def measured_s(model: Any, batch: int, max_s: float = 1.0) -> float:
    """Return the median seconds of a training step on this CPU, with one thread or with all: a
    large step is faster with all of them, a tiny one with one.
    """
    step, counts = training_step(model, batch), {1, ALL_THREADS}
    share_s = max_s / len(counts)
    timings = [time_call(step, device="cpu", threads=n, max_s=share_s) for n in counts]
    return min(timing.median_s for timing in timings)


def estimated(model: Any, batch: int, chip: Chip, precision: str = "fp32") -> StepTime:
    """Return the estimated time of a training step on a chip."""
    work = count_work(Forecaster(model), one_window(model), batch=batch, precision=precision)
    return step_time(work, chip)
