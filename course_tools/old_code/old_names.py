"""Look up what replaces an old name: in `old_names.json`, and in the installed packages.

Every entry was tried with torch 2.9, torch_xla 2.9, Lightning 2.6 and Darts 0.48, and the tests try
it again. A name that has gone without an entry is found by asking the installed packages.
"""

import enum
import importlib
import importlib.util
import inspect
import json
import pkgutil
import re
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

TABLES = json.loads(Path(__file__).with_name("old_names.json").read_text(encoding="utf-8"))
Advice = tuple[str, str]  # what to write today, and why; JSON has them as a list

# The tables of each package, by the name that a reader knows it by.
KNOWN = {
    "Lightning": TABLES["lightning"],
    "torch_xla": TABLES["torch_xla"],
    "Darts": TABLES["darts"],
    "torch": TABLES["torch"],
    "packages that have gone": TABLES["others"],
}


def _of_all(table: str) -> dict[str, Advice]:
    """Return the rows of a table of all packages."""
    tables = [package.get(table, {}) for package in KNOWN.values()]
    return {name: advice for each in tables for name, advice in each.items()}


# By full name; one that ends in a dot covers all below it.
NAMES = _of_all("names")
# Called on a module, a callback, a data module or a Function of autograd ("Function.forward").
METHODS = _of_all("methods")
# "function.keyword", with "*" for any function.
KEYWORDS = _of_all("keywords")
# Of a Trainer; those that begin with use_ were of a LightningModule too.
ATTRIBUTES = _of_all("attributes")
# Regular expressions for the beginning of an expression or an assignment.
IDIOMS = [row for package in KNOWN.values() for row in package.get("idioms", ())]
# Regular expressions for commands and strings.
TEXTS = [row for package in KNOWN.values() for row in package.get("texts", ())]
# What guides use without always showing its import.
ALIASES: dict[str, str] = TABLES["aliases"]

TRAINER = "lightning.pytorch.Trainer"
PACKAGES = ("torch", "lightning", "pytorch_lightning", "torchmetrics", "darts")
GONE, UNKNOWN = object(), object()

# Other packages bring torch.npu and the like, and torch_xla's guides write pl.MpDeviceLoader.
_FROM_ELSEWHERE = re.compile(
    r"torch\.(npu|hpu|mlu|musa|tpu|ops\.|classes\.)|lightning\.pytorch\.(MpDevice|Parallel)Loader"
)
_DEEP_NAME = re.compile(
    r"^lightning\.(pytorch\.)?((trainer|core|module)\.)*"
    r"(?=(Trainer|Lightning(Data)?Module|Callback)\b)"
)


def advise(name: str) -> Advice | None:
    """Return what to write in place of a full name and why, or None for one that is there today."""
    if name.startswith("pytorch_lightning."):
        found = advise(today(name))
        return found and (found[0].replace("lightning.pytorch", "pytorch_lightning"), found[1])
    if advice := _listed(name):
        return advice
    if is_gone(name):
        return ("", f"{version(name)}, which is installed here, has no such name.")
    return None


def _listed(name: str) -> Advice | None:
    """Return the entry for a name, or else that for all below a name, which may have moved."""
    beginnings = [name[: match.start()] for match in re.finditer(r"\.|$", name)]
    for beginning in beginnings:
        if beginning in NAMES:
            return NAMES[beginning]
    for beginning in reversed(beginnings):
        if f"{beginning}." in NAMES:
            new, why = NAMES[f"{beginning}."]
            moved = new + name.removeprefix(beginning)
            if find(moved) is not GONE and find(moved) is not UNKNOWN:
                return (moved, why)
            return _listed(moved) or (new, why)
    return None


def today(name: str) -> str:
    """Return a full name under `lightning.pytorch`, and a Trainer's in the place guides use."""
    name = re.sub(r"^pytorch_lightning\b", "lightning.pytorch", name)
    return _DEEP_NAME.sub("lightning.pytorch.", name)


def is_gone(name: str) -> bool:
    """Say whether an installed package lacks a full name. What cannot be found out is not gone."""
    name = today(name).removesuffix(".*")
    root, *parts = name.split(".")
    is_private = root != "lightning" and any(part.startswith("_") for part in parts)
    if is_private or "__" in name or _FROM_ELSEWHERE.match(name):
        return False
    return find(name) is GONE


@cache
def find(name: str) -> Any:
    """Return what a full name stands for; `GONE`, or `UNKNOWN` where it cannot be found out."""
    if name.partition(".")[0] not in PACKAGES:
        return UNKNOWN
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of names such as torch.has_cuda
            return pkgutil.resolve_name(today(name).replace("lightning.pytorch", _lightning()))
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
    return "lightning.pytorch" if importlib.util.find_spec("lightning") else "pytorch_lightning"


def version(name: str) -> str:
    """Return the package of a name with the version that is installed."""
    package = name.partition(".")[0]
    return f"{package} {getattr(find(package), '__version__', '')}".strip()


@cache
def parameters(name: str) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of an installed function or class; none where it cannot be asked."""
    try:
        return inspect.signature(find(name)).parameters
    except (ValueError, TypeError):
        return {}


def takes(name: str, keyword: str) -> bool | None:
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
