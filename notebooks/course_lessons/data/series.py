"""AirPassengers, and how to cut a series into windows and batches."""

from dataclasses import dataclass

import torch

# Thousands of passengers of international airlines a month, 1949-01 to 1960-12, a year in each
# line. Source: G. E. P. Box and G. M. Jenkins, Time Series Analysis: Forecasting and Control
# (Holden-Day, 1970), series G.
AIR_PASSENGERS = (
    *(112, 118, 132, 129, 121, 135, 148, 148, 136, 119, 104, 118),
    *(115, 126, 141, 135, 125, 149, 170, 170, 158, 133, 114, 140),
    *(145, 150, 178, 163, 172, 178, 199, 199, 184, 162, 146, 166),
    *(171, 180, 193, 181, 183, 218, 230, 242, 209, 191, 172, 194),
    *(196, 196, 236, 235, 229, 243, 264, 272, 237, 211, 180, 201),
    *(204, 188, 235, 227, 234, 264, 302, 293, 259, 229, 203, 229),
    *(242, 233, 267, 269, 270, 315, 364, 347, 312, 274, 237, 278),
    *(284, 277, 317, 313, 318, 374, 413, 405, 355, 306, 271, 306),
    *(315, 301, 356, 348, 355, 422, 465, 467, 404, 347, 305, 336),
    *(340, 318, 362, 348, 363, 435, 491, 505, 404, 359, 310, 337),
    *(360, 342, 406, 396, 420, 472, 548, 559, 463, 407, 362, 405),
    *(417, 391, 419, 461, 472, 535, 622, 606, 508, 461, 390, 432),
)
TRAIN_MONTHS = 121  # up to and including 1959-01, which leaves 23 months to forecast


@dataclass(frozen=True)
class Scale:
    """A linear map of [low, high] to [0, 1], learned from the training part alone."""

    low: float
    high: float

    @classmethod
    def fit(cls, series: torch.Tensor) -> "Scale":
        """Return the scale that maps the smallest value of `series` to 0 and the largest to 1.

        Raises:
            ValueError: a value is NaN or infinite, or all are the same, so that there is nothing to
                scale by.
        """
        _check_finite(series)
        low, high = float(series.min()), float(series.max())
        if low == high:
            raise ValueError(
                f"a scale needs values that differ, but all {len(series)} values are {low:g}."
            )
        return cls(low, high)

    def apply(self, series: torch.Tensor) -> torch.Tensor:
        """Map values to the scale of the model."""
        return (series - self.low) / (self.high - self.low)

    def undo(self, scaled: torch.Tensor) -> torch.Tensor:
        """Map values of the model back to the units of the series."""
        return scaled * (self.high - self.low) + self.low


def air_passengers() -> tuple[torch.Tensor, torch.Tensor]:
    """Return the monthly passengers (thousands) to train on, (121,), and to forecast, (23,)."""
    series = torch.tensor(AIR_PASSENGERS, dtype=torch.float32)
    return series[:TRAIN_MONTHS], series[TRAIN_MONTHS:]


def make_windows(series: torch.Tensor, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Cut a series, (steps,), into windows of `length` steps and the same windows a step later.

    Returns:
        The inputs and the targets, each (steps - length, length, 1): targets[i, j] is the step
        after inputs[i, j].

    Raises:
        ValueError: the series is not one-dimensional, holds NaN or infinity, or is too short for
            one window.
    """
    if series.ndim != 1:
        raise ValueError(
            f"a series has one dimension, (steps,), but this one has shape {tuple(series.shape)}."
        )
    if not 1 <= length < len(series):
        raise ValueError(
            f"windows of {length} steps were requested from a series of {len(series)}. A window "
            "needs one step more than its length for its target, so choose a length "
            f"from 1 to {len(series) - 1}."
        )
    _check_finite(series)
    windows = series.unfold(0, length + 1, 1).unsqueeze(-1)  # (steps - length, length + 1, 1)
    return windows[:, :-1].contiguous(), windows[:, 1:].contiguous()


class ShuffledBatches:
    """The batches of every epoch as tensors of sample indices, in an order that the seed decides.

    Iterating over it once is one epoch: every index from 0 to samples - 1 exactly once, in batches
    of `batch_size` of which the last may be short. A plain loop and a DataLoader (as its `sampler`,
    with `batch_size=None`) see the same batches from it.
    """

    def __init__(self, samples: int, batch_size: int, seed: int = 42):
        if samples < 1 or batch_size < 1:
            raise ValueError(
                f"batches need samples and a size, but got {samples} samples "
                f"in batches of {batch_size}."
            )
        self.samples, self.batch_size = samples, batch_size
        self._generator = torch.Generator().manual_seed(seed)

    def __iter__(self):
        return iter(torch.randperm(self.samples, generator=self._generator).split(self.batch_size))

    def __len__(self) -> int:
        return -(-self.samples // self.batch_size)


def _check_finite(series: torch.Tensor) -> None:
    bad = (~torch.isfinite(series)).nonzero().flatten().tolist()
    if bad:
        raise ValueError(
            f"the series holds {series[bad[0]].item()} at position {bad[0]}. "
            "A single one would make every loss NaN: fill it in or cut the series there."
        )
