"""Checkpoints that are whole or not there at all, and that are read without running what is in
them.
"""

import errno
import io
import resource
import shutil
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import torch

from course_utils.launch.messages import LaunchError
from course_utils.launch.processes import write_whole
from course_utils.lightning import pl

ROOM_BYTES = 2 * 10**9  # what reading a checkpoint may take beside twice its own size


class WholeFiles(pl.plugins.io.TorchCheckpointIO):  # type: ignore[name-defined]
    """Writes a checkpoint beside the old one and then swaps their names, which the system does at
    one stroke.

    Lightning writes to the system's folder for temporary files and moves the result. Where that is
    another disk, the move is a copy, and a full disk or a killed process leaves half a checkpoint
    under the final name.
    """

    def save_checkpoint(
        self, checkpoint: dict, path: str | Path, storage_options: Any = None
    ) -> None:
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
            kept = (
                "The previous checkpoint is still whole"
                if path.exists()
                else "There was none before it"
            )
            advice = "Make room there, or choose another --out, and continue with --resume"
            raise OSError(error.errno, f"{why}. {kept}. {advice}") from error
        data.seek(0)
        if foreign := torch.serialization.get_unsafe_globals_in_checkpoint(data):
            advice = "Keep them out of save_hyperparameters, or leave out the callback or scheduler that saves them."
            warnings.warn(
                f"--resume will refuse this checkpoint, since it holds {foreign}. {advice}",
                stacklevel=2,
            )

    def load_checkpoint(
        self, path: str | Path, map_location: Any = "cpu", weights_only: bool | None = True
    ) -> Any:
        """Load it, and never run code that a file brings along, whatever the caller says."""
        return torch.load(path, map_location=map_location, weights_only=True)


def read_checkpoint(path: Path, module: torch.nn.Module, loops: dict | None = None) -> dict:
    """Return a checkpoint after making sure that it is whole, harmless, and of this model.

    Where the state of a Trainer's loops is given, that in the file must have the same parts, of the
    same kinds.

    Raises:
        LaunchError: it is torn, holds code, is no checkpoint of a training, or belongs to another
            model or optimizer.
    """
    state = _load(path)
    if not _is_training(state) or (
        loops and _misfit({"fit_loop": loops}, state.get("loops"), "loops")
    ):
        raise LaunchError(
            f"{path} is not a checkpoint of a Lightning training. Start anew without --resume."
        )
    advice = "Use the lesson that wrote it, or another --out."
    # with what a module's get_extra_state returns, of any kind
    parts = module.state_dict(), state["state_dict"]
    made, saved = (
        {name: one for name, one in part.items() if isinstance(one, torch.Tensor)} for part in parts
    )
    for name in sorted(saved.keys() | made.keys()):
        there, here = (
            tuple(part[name].shape) if name in part else "none" for part in (saved, made)
        )
        if there != here:
            why = f"{name!r} has shape {there} there and {here} here"
            raise LaunchError(f"{path} is the checkpoint of another model: {why}. {advice}")
    # Some buffers hold infinity from the start, such as a mask.
    if broken := [
        name
        for name in saved
        if (saved[name].isnan() | saved[name].isinf() & made[name].isfinite()).any()
    ]:
        why = f"{path} holds weights that are not finite numbers: {broken[0]!r}"
        raise LaunchError(f"{why}. Start anew without --resume, with a smaller learning rate.")
    if why := _other_optimizer(state["optimizer_states"], module):
        raise LaunchError(f"{path} was written with another optimizer: {why}. {advice}")
    return state


def _other_optimizer(states: list[dict], module: Any) -> str:
    """Return why the module's first optimizer cannot go on from its state, or "" where it can, or
    cannot be asked.
    """
    made: Any = None
    with suppress(Exception):  # some need a trainer to make theirs
        made = module.configure_optimizers()
    made = made.get("optimizer") if isinstance(made, dict) else made
    while isinstance(made, tuple | list) and made:  # [optimizer], or ([optimizers], [schedulers])
        made = made[0]
    if not isinstance(made, torch.optim.Optimizer):
        return ""
    try:
        lacking = [_misfit(made.defaults, group, "group") for group in states[0]["param_groups"]]
        made.load_state_dict(states[0])
        for parameter, state in made.state.items() if made.defaults.get("fused") else ():
            # of another shape, a fused kernel would read past its end
            for name, value in state.items():
                if name != "step" and value is not None and value.shape != parameter.shape:
                    return f"its {name!r} has shape {tuple(value.shape)} for weights of {tuple(parameter.shape)}"
    except Exception as error:  # whatever a state of the wrong shape leads to
        return f"{type(error).__name__}: {error}"
    return f"{type(made).__name__} finds no {max(lacking)!r} in it" if any(lacking) else ""


def _misfit(model: Any, found: Any, name: str) -> str:
    """Return the name of the first part that is not of the same kind as in a model, or ""."""
    if isinstance(model, dict) and isinstance(found, dict):
        return next(
            filter(
                None, (_misfit(part, found.get(key, ...), str(key)) for key, part in model.items())
            ),
            "",
        )
    if model is None or isinstance(model, bool):
        fits = found is None or isinstance(found, bool)
    elif isinstance(model, int | float):
        fits = isinstance(found, int | float) and not isinstance(found, bool) and abs(found) < 10**9
    else:
        fits = type(found) is type(model)
    return "" if fits else name


def _load(path: Path) -> Any:
    if not path.is_file():  # a pipe would never end
        raise LaunchError(
            f"{path} is not an ordinary file. Delete it and start anew without --resume."
        )
    try:
        with _limited_memory(2 * path.stat().st_size + ROOM_BYTES):
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises six different kinds for files of six different shapes
        if "Weights only load failed" in str(error) and "GLOBAL" in str(error):
            why = "it holds a pickled call to something that is neither a tensor nor a number, and loading it would run"
            advice = "None of it ran. Delete the file unless you know who made it."
            raise LaunchError(f"{path} was refused: {why} that code. {advice}") from None
        why = f"is incomplete or not a checkpoint at all ({path.stat().st_size} bytes; {type(error).__name__})"
        advice = "Delete it and start anew without --resume, or put an older copy in its place."
        raise LaunchError(f"{path} {why}. {advice}") from None


def _is_training(state: Any) -> bool:
    """Say whether an object has what Lightning resumes from, each part of its own kind and in a
    possible range.
    """
    known = {"lr_schedulers": [], "callbacks": {}, **state} if isinstance(state, dict) else {}
    kinds = {
        "epoch global_step": int,
        "state_dict callbacks": dict,
        "optimizer_states lr_schedulers": list,
    }
    if not all(
        isinstance(known.get(name), kind) for names, kind in kinds.items() for name in names.split()
    ):
        return False
    report = state.setdefault("callbacks", {}).setdefault("RankReport", {"losses": []})
    return (
        all(0 <= state[name] < 10**9 for name in ("epoch", "global_step"))
        and all(isinstance(name, str) for name in state["state_dict"])
        and all(
            isinstance(part, torch.Tensor) or "_extra_state" in name
            for name, part in state["state_dict"].items()
        )
        and all(
            isinstance(part, dict)
            for part in state["optimizer_states"] + state.get("lr_schedulers", [])
        )
        and str(state.get("pytorch-lightning_version", 2))[:1].isdigit()
        and all(isinstance(kept, dict) for kept in state["callbacks"].values())
        and all(isinstance(loss, float | None) for loss in report.get("losses", [""]))
    )


@contextmanager
def _limited_memory(size_bytes: int) -> Iterator[None]:
    """Let this process take so many more bytes, where the system limits that: a small file can ask
    for any amount.
    """
    limits = resource.getrlimit(resource.RLIMIT_AS)
    limit = psutil.Process().memory_info().vms + size_bytes
    with ExitStack() as undo:
        # macOS refuses some (https://github.com/eclipse-omr/omr/pull/7069)
        with suppress(ValueError):
            resource.setrlimit(
                resource.RLIMIT_AS, (limit if limits[1] < 0 else min(limit, limits[1]), limits[1])
            )
            undo.callback(resource.setrlimit, resource.RLIMIT_AS, limits)
        yield
