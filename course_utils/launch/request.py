"""A request to the launcher, and the values that it refuses."""

import os
from dataclasses import dataclass
from pathlib import Path

from course_utils.load_function import split_name

STRATEGIES = ("ddp_spawn", "ddp")
ACCELERATORS = ("auto", "cpu", "gpu")


class LaunchError(ValueError):
    """A request that was refused before anything was trained: what is wrong, and what to do."""


@dataclass(frozen=True)
class Request:
    """A training and how to launch it: the arguments of `run_lesson`, and their defaults.

    Raises:
        LaunchError: a value makes no sense on any machine, or there is no such file.
    """

    lesson: str
    strategy: str = "ddp_spawn"
    devices: int | None = None
    accelerator: str = "auto"
    epochs: int = 20
    out: str = "runs/last"
    resume: bool = False

    def __post_init__(self) -> None:
        if os.name != "posix":
            raise LaunchError("the launcher needs Linux or macOS; on Windows, use it in WSL.")
        if self.strategy not in STRATEGIES:
            raise LaunchError(f"strategy must be ddp_spawn or ddp, not {self.strategy!r}.")
        if self.accelerator == "tpu":
            raise LaunchError("the launcher has no TPUs: run lesson 4's train_lightning.py there.")
        if self.accelerator not in ACCELERATORS:
            raise LaunchError(f"accelerator must be auto, cpu or gpu, not {self.accelerator!r}.")
        if self.devices is not None:
            _check_count("devices", self.devices)
        _check_count("epochs", self.epochs)
        if not self.out:
            raise LaunchError("out must be the name of a folder, but it is empty.")
        try:
            split_name(self.lesson)
        except ValueError as error:
            raise LaunchError(str(error)) from None

    @property
    def checkpoint(self) -> Path:
        """The file that is written after each epoch and read by `resume`."""
        return Path(self.out) / "last.ckpt"

    @property
    def result_file(self) -> Path:
        """The file in which a successful run leaves its result, as JSON."""
        return Path(self.out) / "result.json"

    def parts(self) -> set[Path]:
        """Return what saves of the checkpoint have left that did not come to their end."""
        return set(Path(self.out).glob(f"{self.checkpoint.name}.*.part"))


def _check_count(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise LaunchError(f"{name} must be a whole number of at least 1, not {value!r}.")
