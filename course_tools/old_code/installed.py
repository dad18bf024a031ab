"""What the installed packages have: names, parameters, versions."""

import contextlib
import enum
import importlib.util
import inspect
import pkgutil
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

TRAINER = "lightning.pytorch.Trainer"
PACKAGES = ("torch", "lightning", "pytorch_lightning", "torchmetrics", "darts", "numpy")
GONE, UNKNOWN = object(), object()
# Other packages bring torch.npu and the like, and torch_xla's guides write pl.MpDeviceLoader.
_FROM_ELSEWHERE = re.compile(
    r"torch\.(npu|hpu|mlu|musa|tpu|ops\.|classes\.)|lightning\.pytorch\.(MpDevice|Parallel)Loader"
)
_DEEP_NAME = re.compile(
    r"^lightning\.(pytorch\.)?((trainer|core|module)\.)*"
    r"(?=(Trainer|Lightning(Data)?Module|Callback)\b)"
)


def canonical(name: str) -> str:
    """Return a full name under `lightning.pytorch`, and a Trainer's in the place guides use."""
    name = re.sub(r"^pytorch_lightning\b", "lightning.pytorch", name)
    return _DEEP_NAME.sub("lightning.pytorch.", name)


def is_gone(name: str) -> bool:
    """Say whether an installed package lacks a full name. What cannot be found out is not gone."""
    name = canonical(name).removesuffix(".*")
    root, *parts = name.split(".")
    is_private = root != "lightning" and any(part.startswith("_") for part in parts)
    if is_private or "__" in name or _FROM_ELSEWHERE.match(name):
        return False
    return resolve(name) is GONE


@cache
def resolve(name: str) -> Any:
    """Return what a full name stands for; `GONE`, or `UNKNOWN` where it cannot be found out."""
    if name.partition(".")[0] not in PACKAGES:
        return UNKNOWN
    with _without_own_files(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names such as torch.has_cuda
        return _resolved(canonical(name).replace("lightning.pytorch", _lightning()))


@contextlib.contextmanager
def _without_own_files() -> Iterator[None]:
    """Leave the working folder out, so that no file in it is imported in a package's place."""
    before = sys.path[:]
    sys.path[:] = [each for each in before if Path(each).resolve() != Path.cwd()]
    try:
        yield
    finally:
        sys.path[:] = before


def is_installed(root: str) -> bool:
    """Say whether a name is a package's, and not that of a file beside the code."""
    try:
        spec = importlib.util.find_spec(root)
    except ValueError:  # a module that somebody made by hand
        return False
    if spec is None or not spec.origin:
        return False
    origin = Path(spec.origin)
    folder = origin.parent.parent if spec.submodule_search_locations else origin.parent
    # An installer leaves its record beside a package, such as torch-2.9.0.dist-info.
    return any(folder.glob(f"*{root}*-info"))


def _resolved(name: str) -> Any:
    """Return what a full name stands for today, `GONE` or `UNKNOWN`, from installed packages."""
    if not is_installed(name.partition(".")[0]):
        return UNKNOWN
    try:
        return pkgutil.resolve_name(name)
    except AttributeError as error:
        owner = error.obj
        if inspect.ismodule(owner) and hasattr(owner, "__path__"):
            # A module that is there but cannot be imported needs a package that is not.
            is_there = importlib.util.find_spec(f"{owner.__name__}.{error.name}") is not None
            return UNKNOWN if is_there else GONE
        is_class = inspect.isclass(owner) and not isinstance(owner, enum.EnumMeta)
        return GONE if is_class or inspect.ismodule(owner) else UNKNOWN
    except Exception:  # it needs a package or a device that is not here
        return UNKNOWN


def _lightning() -> str:
    return "lightning.pytorch" if is_installed("lightning") else "pytorch_lightning"


def version(name: str) -> str:
    """Return the package of a name with the version that is installed."""
    package = name.partition(".")[0]
    return f"{package} {getattr(resolve(package), '__version__', '')}".strip()


@cache
def parameters(name: str) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of an installed function or class; none where it cannot be asked."""
    try:
        return inspect.signature(resolve(name)).parameters
    except (ValueError, TypeError):
        return {}


def accepts(name: str, keyword: str) -> bool | None:
    """Say whether a function takes a keyword; None where that cannot be found out."""
    found = parameters(name)
    if keyword in found:
        return True
    is_open = any(each.kind is each.VAR_KEYWORD for each in found.values())
    return None if not found or is_open or name.startswith("torch.jit.") else False


def missing_arguments(name: str, positions: int, given: set[str]) -> list[str]:
    """Return the arguments without which a metric or callback cannot be made, if not given."""
    if not name.startswith(("torchmetrics.", "lightning.pytorch.callbacks.")):
        return []
    every = parameters(name).values()
    after = [each for each in every if each.kind is each.POSITIONAL_OR_KEYWORD][positions:]
    return [str(each) for each in after if each.default is each.empty and each.name not in given]


def parameters_of_trainer() -> frozenset[str]:
    """Return the arguments of the installed Trainer; none where no Lightning is installed."""
    return frozenset(parameters(TRAINER))
