"""The checkpoint of a launch: written whole, and read without running code."""

import itertools
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from course_utils.atomic_write import open_atomically
from course_utils.launch.request import LaunchError, Request
from course_utils.launch.result import RunResult
from course_utils.lightning import pl


class WholeCheckpoints(pl.plugins.TorchCheckpointIO):
    """Saves a checkpoint so that an interrupted write leaves the old one.

    The first one of a new run takes the place of an earlier run's, which is kept.
    """

    def __init__(self, request: Request):
        super().__init__()
        self.request, self.keeps = request, not request.resume

    def save_checkpoint(self, checkpoint: Any, path: Any, storage_options: Any = None) -> None:
        """Write the checkpoint beside its place, then move it there."""
        with open_atomically(path) as file:
            try:
                torch.save(checkpoint, file)
            except RuntimeError as error:
                if isinstance(error.__context__, OSError):
                    raise error.__context__ from None  # such as a full disk, which torch hides
                raise
            if self.keeps and Path(path) == self.request.checkpoint:
                self.keeps = False
                file.flush()  # a full disk ends here
                keep_last_run(self.request)

    def load_checkpoint(self, path: Any, *_: Any, **__: Any) -> Any:
        """Read a checkpoint without running any code that it may contain."""
        return torch.load(path, map_location="cpu", weights_only=True)


def keep_last_run(request: Request) -> None:
    """Give the checkpoint and the result of an earlier run names that no file has."""
    saved, result_file = request.checkpoint, request.result_file
    if saved.is_symlink():
        saved = saved.resolve()  # the link stays
    if not saved.exists():
        return
    kept = saved.with_name("previous.ckpt")
    numbers = itertools.count(2)
    while os.path.lexists(kept) or os.path.lexists(kept.with_suffix(".json")):
        kept = kept.with_name(f"previous-{next(numbers)}.ckpt")
    if result_file.exists():
        result = RunResult.load(result_file)
        replace(result, checkpoint=str(kept)).save(kept.with_suffix(".json"))
        result_file.unlink()
    saved.rename(kept)
    print(f"the previous run's checkpoint is kept as {kept}")


def check_checkpoint(request: Request) -> None:
    """Raise LaunchError if the checkpoint in the folder is not a launch's, or cannot be continued.

    Without `resume` it is only kept, but so is no file of others.
    """
    path = request.checkpoint
    if not path.exists():
        return
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        epochs, seed = state["epoch"] + 1, state["callbacks"]["EpochReport"]["seed"]
    except Exception as error:  # torch raises many kinds for torn and foreign files
        raise LaunchError(
            f"{path} is not a whole checkpoint of the launcher ({type(error).__name__}). Choose "
            "another folder, or move it away."
        ) from None
    if not request.resume:
        return
    if epochs >= request.epochs:
        raise LaunchError(
            f"{request.out} has been trained for {epochs} epochs already; ask for more epochs."
        )
    if seed != request.seed:
        raise LaunchError(
            f"{request.out} was trained with seed={seed}, and not with seed={request.seed}: resume "
            "with its own."
        )
