"""What the installed torch, Lightning and torchmetrics have today: names and parameters."""

import enum
import importlib
import importlib.metadata
import importlib.util
import inspect
import re
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any

PACKAGES = ("torch", "lightning", "pytorch_lightning", "torchmetrics")
TRAINER = "lightning.pytorch.Trainer"
GONE, UNKNOWN = object(), object()

# Other packages bring torch.npu and the like, and torch_xla's guides write pl.MpDeviceLoader.
_FROM_ELSEWHERE = re.compile(
    r"torch\.(npu|hpu|mlu|musa|tpu|ops\.|classes\.)|lightning\.pytorch\.(MpDevice|Parallel)Loader"
)
_DEEP_NAME = re.compile(
    r"^lightning\.(pytorch\.)?((trainer|core|module)\.)*"
    r"(?=(Trainer|Lightning(Data)?Module|Callback)\b)"
)
# Where something of the same name can have moved, by package.
_HOMES = {
    "lightning.pytorch": "callbacks strategies loggers plugins profilers utilities tuner",
    "torch": "linalg fft special amp nn.functional nn nn.utils utils.data optim.lr_scheduler",
}


def today(name: str) -> str:
    """Return a full name under `lightning.pytorch`, and a Trainer's in the place guides use."""
    name = re.sub(r"^pytorch_lightning\b", "lightning.pytorch", name)
    return _DEEP_NAME.sub("lightning.pytorch.", name)


def is_gone(name: str) -> bool:
    """Say whether an installed package lacks a full name. What cannot be found out is not gone."""
    name = today(name)
    root, *parts = name.split(".")
    is_private = root != "lightning" and any(part.startswith("_") for part in parts)
    if is_private or "__" in name or _FROM_ELSEWHERE.match(name):
        return False
    return root in PACKAGES and find(name) is GONE


@cache
def find(name: str) -> Any:
    """Return what a full name stands for; `GONE`, or `UNKNOWN` where it cannot be found out."""
    root, *parts = today(name).replace("lightning.pytorch", _lightning()).split(".")
    if root not in PACKAGES:
        return UNKNOWN
    thing = _module(root)
    for part in parts:
        if thing is UNKNOWN or thing is GONE:
            break
        thing = _member(thing, part)
    return thing


def _lightning() -> str:
    return "lightning.pytorch" if importlib.util.find_spec("lightning") else "pytorch_lightning"


def _member(thing: Any, name: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of names such as torch.has_cuda
            return getattr(thing, name)
    except AttributeError:
        pass
    except Exception:  # a lazy module whose packages are not here
        return UNKNOWN
    if inspect.isclass(thing):
        return UNKNOWN if isinstance(thing, enum.EnumMeta) else GONE
    if not inspect.ismodule(thing):
        return UNKNOWN
    path = f"{thing.__name__}.{name}"
    is_module = hasattr(thing, "__path__") and importlib.util.find_spec(path) is not None
    return _module(path) if is_module else GONE


@cache
def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except Exception:  # it needs a package or a device that is not here
        return UNKNOWN


def new_home(name: str) -> str:
    """Return where something of the same name is today, or ""."""
    leaf, full = name.rpartition(".")[2], today(name)
    if leaf.startswith("_"):
        return ""
    for root, modules in _HOMES.items():
        if full.startswith(f"{root}."):
            homes = [f"{root}.{module}" for module in modules.split()] + [root]
            return next((f"{home}.{leaf}" for home in homes if hasattr(find(home), leaf)), "")
    return ""


@cache
def version(name: str) -> str:
    """Return the package of a name with the version that is installed."""
    package = name.partition(".")[0].replace("_lightning", "-lightning")
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return package


@cache
def parameters(name: str) -> Mapping[str, inspect.Parameter] | None:
    """Return the parameters of a function or class; None where they are open or not known."""
    if name.startswith("torch.jit."):
        return None
    try:
        found = inspect.signature(find(name)).parameters
    except (ValueError, TypeError):
        return None
    return None if any(each.kind is each.VAR_KEYWORD for each in found.values()) else found


@cache
def trainer_parameters() -> tuple[str, ...]:
    """Return the arguments of today's Trainer.

    Raises:
        ModuleNotFoundError: no Lightning is installed.
    """
    trainer = importlib.import_module(_lightning()).Trainer
    return tuple(inspect.signature(trainer).parameters)


def missing_arguments(name: str, positions: int, given: set[str]) -> list[str]:
    """Return the arguments without which a metric or callback cannot be made, if not given."""
    if not name.startswith(("torchmetrics.", "lightning.pytorch.callbacks.")):
        return []
    thing = find(name)
    made = thing.__init__ if inspect.isclass(thing) else thing
    if not inspect.isfunction(made):
        return []
    every = inspect.signature(thing).parameters.values()
    after = [each for each in every if each.kind is each.POSITIONAL_OR_KEYWORD][positions:]
    return [str(each) for each in after if each.default is each.empty and each.name not in given]
