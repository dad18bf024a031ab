"""Made-up sales of shops, for Darts."""

from typing import Any

import numpy as np
import pandas as pd


def shop_sales(count: int = 100, days: int = 400) -> list[Any]:
    """Return daily sales with a week, a year and noise in them, as Darts series of float32."""
    from darts import TimeSeries

    dates, day = pd.date_range("2024-01-01", periods=days, freq="D"), np.arange(days)
    noise = np.random.default_rng(0).normal(0, 0.2, (count, days))
    shift = np.linspace(0, 7, count)[:, None]
    values = np.sin(2 * np.pi * (day + shift) / 7) + np.sin(2 * np.pi * day / 365) + noise
    return [TimeSeries.from_times_and_values(dates, each.astype(np.float32)) for each in values]
