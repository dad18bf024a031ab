"""A request to the launcher, and the values that it refuses."""

import math
import os
from dataclasses import dataclass
from pathlib import Path

from course_utils.load_function import split_name

# Lightning's own names; its errors advise to take one of the longer ones.
STRATEGIES = tuple(
    f"{strategy}{more}"
    for strategy in ("ddp_spawn", "ddp")
    for more in ("", "_find_unused_parameters_true", "_find_unused_parameters_false")
)
ACCELERATORS = ("auto", "cpu", "gpu")


class LaunchError(ValueError):
    """A request that was refused before anything was trained: what is wrong, and what to do."""


@dataclass(frozen=True)
class Request:
    """A training and how to launch it: the arguments of `run_training`, and their defaults.

    Raises:
        LaunchError: a value makes no sense on any machine, or there is no such file.
    """

    training: str
    strategy: str = "ddp_spawn"
    count: int | None = None
    accelerator: str = "auto"
    epochs: int = 20
    seed: int | None = None
    out: str = "runs/last"
    resume: bool = False

    def __post_init__(self) -> None:
        if os.name != "posix":
            raise LaunchError("the launcher needs Linux or macOS; on Windows, use it in WSL.")
        if self.strategy not in STRATEGIES:
            raise LaunchError(
                f"strategy must be ddp_spawn or ddp, not {self.strategy!r}. Both can end in "
                "_find_unused_parameters_true."
            )
        if self.accelerator == "tpu":
            raise LaunchError("the launcher has no TPUs: write Trainer(accelerator='tpu') there.")
        if self.accelerator not in ACCELERATORS:
            raise LaunchError(f"accelerator must be auto, cpu or gpu, not {self.accelerator!r}.")
        if self.count is not None:
            _check_whole("count", self.count, 1)
        _check_whole("epochs", self.epochs, 1)
        if self.seed is not None:
            _check_whole("seed", self.seed, 0, 2**32 - 1)  # what NumPy takes
        if not isinstance(self.training, str):
            raise LaunchError(
                f"training must be the name of a function, not {self.training!r}: write "
                "'path/to/file.py:function', from which each process can load it."
            )
        if not isinstance(self.out, str) or not self.out:
            raise LaunchError(f"out must be the name of a folder, not {self.out!r}.")
        object.__setattr__(self, "out", os.path.expanduser(self.out))
        object.__setattr__(self, "training", os.path.expanduser(self.training))
        try:
            split_name(self.training)
        except ValueError as error:
            raise LaunchError(str(error)) from None

    @property
    def spawns(self) -> bool:
        """Say whether the training is built once and sent to the ranks."""
        return self.strategy.startswith("ddp_spawn")

    @property
    def checkpoint(self) -> Path:
        """The file that is written after each epoch and read by `resume`."""
        return Path(self.out) / "last.ckpt"

    def parts(self) -> set[Path]:
        """Return what saves of the checkpoint have left that did not come to their end."""
        return set(Path(self.out).glob(f"{self.checkpoint.name}.*.part"))  # of `open_atomically`

    @property
    def result_file(self) -> Path:
        """The file in which a successful run leaves its result, as JSON."""
        return Path(self.out) / "result.json"


def _check_whole(name: str, value: object, least: int, most: float = math.inf) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        limit = f"at least {least}" if most == math.inf else f"{least} to {most}"
        raise LaunchError(f"{name} must be a whole number of {limit}, not {value!r}.")
