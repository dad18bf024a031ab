"""Checkpoints that are whole or not there at all, and that are read without running what is in them."""

import errno
import io
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from course_utils.launch.messages import LaunchError
from course_utils.launch.processes import write_whole
from course_utils.training import pl

plugins: Any = pl.plugins


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


def read_checkpoint(path: Path, module: torch.nn.Module, loops: dict) -> dict:
    """Return a checkpoint after making sure that it is whole, harmless, and of this model and its Trainer's loops.

    Raises:
        LaunchError: it is torn, holds code, is no checkpoint of a training, or belongs to another model or optimizer.
    """
    state = _load(path)
    if not _is_training(state, loops):
        raise LaunchError(f"{path} is no checkpoint of a Lightning training. Start anew without --resume.")
    advice = "Use the lesson that wrote it, or another --out."
    there = {name: tuple(value.shape) for name, value in state["state_dict"].items()}
    here = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    for name in sorted(there.keys() | here.keys(), key=str):
        if there.get(name) != here.get(name):
            shapes = f"has shape {there.get(name, 'none')} there and {here.get(name, 'none')} here"
            raise LaunchError(f"{path} is the checkpoint of another model: {name!r} {shapes}. {advice}")
    broken = [name for name, value in state["state_dict"].items() if not value.isfinite().all()]
    if broken:
        why = f"{path} holds weights that are not finite numbers: {broken[0]!r}"
        raise LaunchError(f"{why}. Start anew without --resume, with a smaller learning rate.")
    try:
        why = _other_optimizer(state["optimizer_states"], module)
    except Exception as error:  # whatever a state of the wrong shape leads to
        why = f"{type(error).__name__}: {error}"
    if why:
        raise LaunchError(f"{path} was written with another optimizer: {why}. {advice}")
    return state


def _other_optimizer(states: list[dict], module: Any) -> str:
    """Return why the module's first optimizer cannot go on from its state, or "" where it can, or cannot be asked."""
    made: Any = None
    with suppress(Exception):  # some need a trainer to make theirs
        made = module.configure_optimizers()
    made = made.get("optimizer") if isinstance(made, dict) else made
    while isinstance(made, tuple | list) and made:  # [optimizer], or ([optimizers], [schedulers])
        made = made[0]
    if not isinstance(made, torch.optim.Optimizer):
        return ""
    groups, usual = states[0]["param_groups"], made.defaults
    lacking = [name for group in groups for name in usual if not _fits(usual[name], group.get(name, ...))]
    made.load_state_dict(states[0])
    if lacking:
        return f"{type(made).__name__} finds no {lacking[0]!r} in it"
    for parameter, state in made.state.items():
        for name, value in state.items():
            if isinstance(value, torch.Tensor) and value.numel() != 1 and value.shape != parameter.shape:
                return f"its {name!r} has shape {tuple(value.shape)} for weights of {tuple(parameter.shape)}"
    return ""


def _fits(model: Any, found: Any) -> bool:
    """Say whether something has every part of a model, each of the same kind, and numbers of a possible size."""
    if isinstance(model, dict):
        return isinstance(found, dict) and all(_fits(part, found.get(name, ...)) for name, part in model.items())
    if isinstance(model, list):  # of one part, which stands for any number of them
        return isinstance(found, list) and all(_fits(kind, part) for kind in model for part in found)
    if isinstance(model, bool | None):
        return isinstance(found, bool | None)
    if isinstance(model, int | float):
        return isinstance(found, int | float) and abs(found) < 10**9
    return type(found) is type(model)


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


def _is_training(state: Any, loops: dict) -> bool:
    """Say whether an object has what Lightning resumes from, each part of its own kind and in a possible range."""
    parts = {"epoch": 0, "global_step": 0, "state_dict": {}, "optimizer_states": [{}], "lr_schedulers": [{}]}
    parts |= {"callbacks": {"RankReport": {"losses": []}}, "loops": {"fit_loop": loops}}
    return (
        _fits({**parts, "pytorch-lightning_version": ""}, state)
        and 0 <= state["epoch"] < state["global_step"]
        and _fits([torch.tensor(0)], [*state["state_dict"].values()])
        and _fits([{}], [*state["callbacks"].values()])
        and all(isinstance(loss, float) for loss in state["callbacks"]["RankReport"]["losses"])
    )
