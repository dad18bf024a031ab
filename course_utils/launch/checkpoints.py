"""Checkpoints that are whole or not there at all, and that are read without running what is in them."""

import errno
import io
import shutil
import textwrap
from pathlib import Path
from typing import Any

import torch

from course_utils.launch.messages import LaunchError
from course_utils.launch.processes import write_whole
from course_utils.training import pl

plugins: Any = pl.plugins

# What Lightning resumes from.
PARTS = {"epoch": int, "global_step": int, "state_dict": dict, "optimizer_states": list, "loops": dict}
PARTS |= {"callbacks": dict, "pytorch-lightning_version": str}
ADVICE = "Use the lesson that wrote it, or another --out."


class WholeFiles(plugins.io.TorchCheckpointIO):
    """Writes a checkpoint beside the old one and then swaps their names, which the system does at one stroke.

    Lightning writes to the system's folder for temporary files and moves the result. Where that is another disk, the
    move is a copy, and a full disk or a killed process leaves half a checkpoint under the final name.
    """

    def save_checkpoint(self, checkpoint: dict, path: str | Path, storage_options: Any = None) -> None:
        """Save it, or raise OSError and leave the previous one as it was."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        data = io.BytesIO()
        torch.save(checkpoint, data)
        try:
            write_whole(path, data.getvalue())
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            free = f"the disk of {path.parent} has {shutil.disk_usage(path.parent).free / 1e6:,.2f} MB free"
            why = f"no space for the checkpoint: it takes {data.tell() / 1e3:,.1f} kB, and {free}"
            kept = "The previous checkpoint is still whole" if path.exists() else "There was none before it"
            advice = "Make room there, or choose another --out, and continue with --resume"
            raise OSError(error.errno, f"{why}. {kept}. {advice}") from error

    def load_checkpoint(self, path: str | Path, map_location: Any = "cpu", weights_only: bool | None = True) -> Any:
        """Load it, and never run code that a file brings along, whatever the caller says."""
        return torch.load(path, map_location=map_location, weights_only=True)


def read_checkpoint(path: Path, module: torch.nn.Module) -> dict:
    """Return a checkpoint after making sure that it is whole, harmless, and of this model, which gets its weights.

    Raises:
        LaunchError: it is torn, holds code, is no checkpoint of a training, or belongs to another model.
    """
    state = _load(path)
    if not (isinstance(state, dict) and all(isinstance(state.get(name), kind) for name, kind in PARTS.items())):
        raise LaunchError(f"{path} is no checkpoint of a Lightning training. Start anew without --resume.")
    try:
        module.load_state_dict(state["state_dict"])
    except RuntimeError as error:
        why = textwrap.shorten(str(error), 500)  # it names every weight that differs
        raise LaunchError(f"{path} is the checkpoint of another model: {why} {ADVICE}") from None
    if broken := [name for name, value in module.named_parameters() if not value.isfinite().all()]:
        why = f"{path} holds weights that are not finite numbers: {broken[0]!r}"
        raise LaunchError(f"{why}. Start anew without --resume, with a smaller learning rate.")
    return state


def check_optimizer(optimizer: torch.optim.Optimizer) -> None:
    """Raise LaunchError if the state that an optimizer has from a checkpoint is that of another one."""
    why = "the checkpoint was written with another optimizer"
    for group in optimizer.param_groups:
        # Every optimizer that has loaded a state expects "differentiable", but not every one keeps it.
        if lacking := sorted(optimizer.defaults.keys() - group.keys() - {"differentiable"}):
            raise LaunchError(f"{why}: {type(optimizer).__name__} finds no {', '.join(lacking)} in it. {ADVICE}")
    for parameter, state in optimizer.state.items() if optimizer.defaults.get("fused") else ():
        for name in state.keys() - {"step"}:  # of another shape, a fused kernel would read past its end
            if (shape := getattr(state[name], "shape", None)) != parameter.shape:
                raise LaunchError(f"{why}: its {name!r} has shape {shape} for weights of {parameter.shape}. {ADVICE}")


def _load(path: Path) -> Any:
    if not path.is_file():  # a pipe would never end
        raise LaunchError(f"{path} is not an ordinary file. Delete it and start anew without --resume.")
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises six different kinds for files of six different shapes
        if "Weights only load failed" in str(error) and "GLOBAL" in str(error):
            why = "it holds a pickled call to something that is neither a tensor nor a number, and loading it would run"
            advice = "None of it ran. Delete the file unless you know who made it."
            raise LaunchError(f"{path} was refused: {why} that code. {advice}") from None
        why = f"is torn or no checkpoint at all ({path.stat().st_size} bytes; {type(error).__name__})"
        advice = "Delete it and start anew without --resume, or put an older copy in its place."
        raise LaunchError(f"{path} {why}. {advice}") from None
