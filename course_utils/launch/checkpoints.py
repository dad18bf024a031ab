"""Checkpoints that are whole or not there at all, and that are read without running what is in them."""

import errno
import io
import os
import shutil
from pathlib import Path

import torch

from course_utils.launch.messages import LaunchError

try:
    from lightning.pytorch.plugins.io import TorchCheckpointIO
except ModuleNotFoundError:  # Kaggle has the same package under its older name
    from pytorch_lightning.plugins.io import TorchCheckpointIO


class WholeFiles(TorchCheckpointIO):
    """Writes a checkpoint beside the old one and then swaps their names, which the system does at one stroke.

    Lightning writes to the system's folder for temporary files and moves the result. Where that is another disk, the
    move is a copy, and a full disk or a killed process leaves half a checkpoint under the final name.
    """

    def save_checkpoint(self, checkpoint, path, storage_options=None):
        """Save it, or raise OSError and leave the previous one as it was."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        data = io.BytesIO()
        torch.save(checkpoint, data)
        part = path.with_suffix(".part")
        try:
            with part.open("wb") as file:
                file.write(data.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise _named(error, path, data.tell()) from error

    def load_checkpoint(self, path, map_location=lambda storage, location: storage, weights_only=None):
        """Load it, and never run code that a file brings along, whatever the caller says."""
        return torch.load(path, map_location=map_location, weights_only=True)


def _named(error: OSError, path: Path, size_bytes: int) -> OSError:
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return error
    free = shutil.disk_usage(path.parent).free
    kept = "The previous checkpoint is still whole." if path.exists() else "There was none before it."
    return OSError(
        error.errno,
        f"no space for the checkpoint: it takes {_size(size_bytes)}, and the disk of {path.parent} has "
        f"{_size(free)} free. {kept} Make room there, or choose another --out, and continue with --resume",
    )


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f} MB" if size_bytes >= 1e5 else f"{size_bytes / 1e3:.1f} kB"


def read_checkpoint(path: Path, module: torch.nn.Module) -> dict:
    """Return a checkpoint after making sure that it is whole, harmless, and of this model.

    Args:
        path: the file.
        module: the model that is to continue from it.

    Raises:
        LaunchError: it is torn, holds code, or belongs to another model.
    """
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises six different kinds for files of six different shapes
        raise LaunchError(_why_unreadable(path, error)) from None
    if not isinstance(checkpoint, dict) or not {"state_dict", "epoch", "global_step"} <= checkpoint.keys():
        raise LaunchError(f"{path} is no checkpoint of a Lightning training. Start anew without --resume.")
    there = {name: tuple(value.shape) for name, value in checkpoint["state_dict"].items()}
    here = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    if there != here:
        name = sorted({name for name in there.keys() | here.keys() if there.get(name) != here.get(name)})[0]
        raise LaunchError(
            f"{path} is the checkpoint of another model: {name!r} has shape {there.get(name, 'none')} there and "
            f"{here.get(name, 'none')} here. Use the lesson that wrote it, or another --out."
        )
    return checkpoint


def _why_unreadable(path: Path, error: Exception) -> str:
    if "Weights only load failed" in str(error) and "GLOBAL" in str(error):
        return (
            f"{path} was refused: it holds a pickled call to something that is neither a tensor nor a number, and "
            f"loading it would run that code. None of it ran. Delete the file unless you know who made it."
        )
    return (
        f"{path} is torn or no checkpoint at all ({path.stat().st_size} bytes; {type(error).__name__}). Delete it "
        f"and start anew without --resume, or put an older copy in its place."
    )
