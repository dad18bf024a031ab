"""The trainings that the launcher knows by name, and how it loads one from a file."""

import importlib
import sys
from pathlib import Path
from typing import Any

from course_utils.launch.request import LaunchError


def air_rnn() -> tuple[Any, Any]:
    """Return the 481-parameter RNN and the windows of AirPassengers that it learns from."""
    from torch.utils.data import DataLoader, TensorDataset

    from course_utils.data.models import AirRNN
    from course_utils.data.series import Scale, air_passengers, make_windows
    from course_utils.lightning import Regression

    series, _ = air_passengers()
    # A window of 25 months leaves 96 of them, which 1, 2, 3, 4, 6 or 8 ranks share evenly.
    windows = make_windows(Scale.fit(series).apply(series), 25)
    return Regression(AirRNN()), DataLoader(TensorDataset(*windows), batch_size=16, shuffle=True)


TRAININGS = {"air_rnn": air_rnn}


def check_training(name: str) -> None:
    """Raise LaunchError if there is no such training or file, without running any code of it."""
    if name in TRAININGS:
        return
    path, _ = _split(name)
    if not path.is_file():
        raise LaunchError(f"there is no file {str(path)!r} in {Path.cwd()}.")


def load_training(name: str) -> tuple[Any, Any]:
    """Return the LightningModule and the DataLoader of a training.

    Raises:
        LaunchError: there is no such training, or it returns something else.
    """
    from torch.utils.data import DataLoader

    from course_utils.lightning import pl

    if name in TRAININGS:
        returned = TRAININGS[name]()
    else:
        path, function = _split(name)
        # A spawned rank gets this search path too, and imports the file again by its name.
        sys.path.insert(0, str(path.parent.absolute()))
        module = importlib.import_module(path.stem)
        if not hasattr(module, function):
            raise LaunchError(f"{path} defines no function {function!r}.")
        returned = getattr(module, function)()
    parts = returned if isinstance(returned, tuple) else (returned,)
    wanted = (pl.LightningModule, DataLoader)
    if len(parts) != 2 or not all(map(isinstance, parts, wanted)):
        kinds = ", ".join(type(part).__name__ for part in parts)
        raise LaunchError(f"{name} returned {kinds}, not a LightningModule and its DataLoader.")
    return parts


def _split(name: str) -> tuple[Path, str]:
    path, colon, function = name.rpartition(":")
    if not colon or not path.endswith(".py"):
        known = ", ".join(TRAININGS)
        raise LaunchError(
            f"there is no lesson {name!r}. Write {known}, or path/to/file.py:function."
        )
    return Path(path), function
