"""The checkpoint of a launch: written whole, and read without running code."""

import zipfile
from pathlib import Path
from typing import Any

import torch

from course_utils.launch.request import LaunchError, Request
from course_utils.lightning import pl
from course_utils.whole_file import open_whole


class WholeCheckpoints(pl.plugins.TorchCheckpointIO):
    """Saves a checkpoint so that an interrupted write leaves the old one."""

    def save_checkpoint(self, checkpoint: Any, path: Any, storage_options: Any = None) -> None:
        """Write the checkpoint beside its place, then move it there."""
        with open_whole(path) as file:
            try:
                torch.save(checkpoint, file)
            except RuntimeError as error:
                if isinstance(error.__context__, OSError):
                    raise error.__context__ from None  # such as a full disk, which torch hides
                raise

    def load_checkpoint(self, path: Any, *_: Any, **__: Any) -> Any:
        """Read a checkpoint without running any code that it may contain."""
        return torch.load(path, map_location="cpu", weights_only=True)


def check_checkpoint(request: Request) -> None:
    """Raise LaunchError if the checkpoint to resume from cannot be continued, or is complete."""
    path = request.checkpoint
    if not request.resume or not path.exists():
        return
    try:
        epochs = _finished_epochs(path)
    except Exception as error:  # a forged file can raise any
        reason = error if isinstance(error, LaunchError) else type(error).__name__
        raise LaunchError(
            f"{path} is not a whole checkpoint of the launcher ({reason}). Start without resume."
        ) from None
    if epochs >= request.epochs:
        raise LaunchError(
            f"{request.out} has been trained for {epochs} epochs already; ask for more epochs."
        )


def _finished_epochs(path: Path) -> int:
    if not path.is_file():
        raise LaunchError("it is not a file")  # reading a pipe could wait for ever
    with zipfile.ZipFile(path) as archive:
        unpacked_bytes = sum(part.file_size for part in archive.infolist())
    if unpacked_bytes > path.stat().st_size:  # torch does not compress
        raise LaunchError(f"it would unpack to {unpacked_bytes / 1e9:.1f} GB")
    state = torch.load(path, map_location="cpu", weights_only=True)
    for key in ("state_dict", "optimizer_states", "lr_schedulers", "loops", "global_step"):
        if key not in state:
            raise LaunchError(f"it has no {key!r}")
    losses = state["callbacks"]["EpochReport"]["losses"]
    if not all(isinstance(loss, float) for loss in losses):
        raise LaunchError("its losses are not numbers")
    return state["epoch"] + 1
