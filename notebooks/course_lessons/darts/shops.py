"""What lesson 10 needs to run: made-up sales of shops, and a sentence where Darts is missing."""

from typing import Any

import numpy as np
import pandas as pd


def darts_problem() -> str | None:
    """Return a sentence on why Darts cannot be used here and what helps, or None when it can."""
    try:
        import darts.models  # noqa: F401
    except ImportError as error:
        how = 'set_up(extra="darts") (Python 3.11+)'
        return f"Darts is not here ({error}). Add it: {how}."
    return None


def shops(count: int = 100, days: int = 400) -> list[Any]:
    """Return daily sales with a week, a year and noise in them, as Darts series of float32."""
    from darts import TimeSeries

    dates, day = pd.date_range("2024-01-01", periods=days, freq="D"), np.arange(days)
    noise = np.random.default_rng(0).normal(0, 0.2, (count, days))
    shift = np.linspace(0, 7, count)[:, None]
    values = np.sin(2 * np.pi * (day + shift) / 7) + np.sin(2 * np.pi * day / 365) + noise
    return [TimeSeries.from_times_and_values(dates, each.astype(np.float32)) for each in values]
