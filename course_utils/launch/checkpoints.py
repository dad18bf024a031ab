"""The checkpoint of a launch: written whole, and read without running code."""

import itertools
import os
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from course_utils.atomic_write import open_atomically
from course_utils.launch.request import LaunchError, Request
from course_utils.launch.result import RunResult
from course_utils.lightning import pl

MOST_BYTES = 20_000_000  # that of a network of a thousand layers takes less than one million


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
        epochs, seed = _finished_epochs(path)
    except Exception as error:  # a forged file can raise any
        reason = error if isinstance(error, LaunchError) else type(error).__name__
        raise LaunchError(
            f"{path} is not a whole checkpoint of the launcher ({reason}). Choose another folder, "
            "or move it away."
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


def _finished_epochs(path: Path) -> tuple[int, int | None]:
    """Return the epochs in a checkpoint and the seed that was asked for."""
    _refuse_bomb(path)
    state = torch.load(path, map_location="cpu", weights_only=True)
    for key in ("state_dict", "optimizer_states", "lr_schedulers", "loops"):
        if key not in state:
            raise LaunchError(f"it has no {key!r}")
    report = state["callbacks"]["EpochReport"]
    losses, epoch = report["losses"], state["epoch"]
    for name, number in (("epoch", epoch), ("global_step", state["global_step"])):
        if type(number) is not int or number < 0:
            raise LaunchError(f"its {name} is not a whole number from 0 on")
    if type(losses) is not list or len(losses) > epoch + 1:
        raise LaunchError("it has more losses than epochs")
    if not all(isinstance(loss, float) for loss in losses):
        raise LaunchError("its losses are not numbers")
    return epoch + 1, report["seed"]


def _refuse_bomb(path: Path) -> None:
    """Raise LaunchError if reading a checkpoint could fill the memory, or never end."""
    if not path.is_file():
        raise LaunchError("it is not a file")  # reading a pipe could wait for ever
    with zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
    unpacked_bytes = sum(part.file_size for part in parts)
    if unpacked_bytes > path.stat().st_size:  # torch does not compress
        raise LaunchError(f"it would unpack to {unpacked_bytes / 1e9:.1f} GB")
    # torch reads this part object by object; the weights are in parts of their own
    if any(part.filename.endswith("data.pkl") and part.file_size > MOST_BYTES for part in parts):
        raise LaunchError("it holds too many objects")
