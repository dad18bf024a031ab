"""How the launcher loads a training, from a file or by its dotted name."""

import importlib
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from course_utils.launch.request import LaunchError


def check_training(name: str) -> None:
    """Raise LaunchError if there is no such training or file, without running any code of it."""
    home, _ = _split(name)
    if not home.endswith(".py"):
        if not find_spec(home.partition(".")[0]):
            raise LaunchError(f"there is no package {home.partition('.')[0]!r} to import.")
        return
    path = Path(home)
    if not path.is_file():
        raise LaunchError(f"there is no file {str(path)!r} in {Path.cwd()}.")


def load_training(name: str) -> tuple[Any, Any]:
    """Return the LightningModule and the DataLoader of a training.

    Raises:
        LaunchError: there is no such training, or it returns something else.
    """
    from torch.utils.data import DataLoader

    from course_utils.lightning import pl

    home, function = _split(name)
    if home.endswith(".py"):
        # A spawned rank gets this search path too, and imports the file again by its name.
        sys.path.insert(0, str(Path(home).parent.absolute()))
        module = importlib.import_module(Path(home).stem)
    else:
        module = importlib.import_module(home)
    if not hasattr(module, function):
        raise LaunchError(f"{home} defines no function {function!r}.")
    returned = getattr(module, function)()
    parts = returned if isinstance(returned, tuple) else (returned,)
    wanted = (pl.LightningModule, DataLoader)
    if len(parts) != 2 or not all(map(isinstance, parts, wanted)):
        kinds = ", ".join(type(part).__name__ for part in parts)
        raise LaunchError(f"{name} returned {kinds}, not a LightningModule and its DataLoader.")
    return parts


def _split(name: str) -> tuple[str, str]:
    home, _, function = name.rpartition(":")
    if not home or not function.isidentifier():
        raise LaunchError(
            f"there is no lesson {name!r}. Write path/to/file.py:function or "
            "package.module:function."
        )
    return home, function
