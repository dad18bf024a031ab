"""Look up what replaces an old name: in `old_names.json`, and in the installed packages.

Every entry was tried with torch 2.9, torch_xla 2.9, Lightning 2.6 and Darts 0.48, and the tests try
it again. A name that has gone without an entry is found by asking the installed packages.
"""

import contextlib
import enum
import importlib.util
import inspect
import json
import pkgutil
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
    "NumPy": TABLES["numpy"],
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
PACKAGES = ("torch", "lightning", "pytorch_lightning", "torchmetrics", "darts", "numpy")
GONE, UNKNOWN = object(), object()
HOOK_KINDS = ("LightningModule", "Callback", "LightningDataModule")
_HOOKS_OF_MODULES = (
    *("optimizer_step", "optimizer_zero_grad", "lr_scheduler_step", "backward"),
    *("configure_gradient_clipping", "configure_optimizers"),
)
# Arguments of hooks of Lightning 1 that no hook has today.
OLD_ARGUMENTS = ("optimizer_idx", "on_tpu", "using_native_amp", "using_lbfgs", "opt_idx")

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
    with _without_own_files(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names such as torch.has_cuda
        return _resolved(today(name).replace("lightning.pytorch", _lightning()))


@contextlib.contextmanager
def _without_own_files() -> Iterator[None]:
    """Leave the working folder out, so that no file in it is imported in a package's place."""
    before = sys.path[:]
    sys.path[:] = [each for each in before if Path(each).resolve() != Path.cwd()]
    try:
        yield
    finally:
        sys.path[:] = before


def _is_installed(root: str) -> bool:
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
    if not _is_installed(name.partition(".")[0]):
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
    return "lightning.pytorch" if _is_installed("lightning") else "pytorch_lightning"


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


@dataclass(frozen=True)
class Hook:
    """A method that Lightning calls on a module, a callback or a data module.

    Attributes:
        kind: "LightningModule", "Callback" or "LightningDataModule".
        name: of the method.
        passed: the arguments that it is always called with.
        today: how it is written today, such as "def on_fit_end(self)".
        is_open: whether it takes any further arguments.
    """

    kind: str
    name: str
    passed: tuple[str, ...]
    today: str
    is_open: bool

    def refuses(self, required: list[str], accepted: int) -> str:
        """Return why Lightning's call fails on a method, or "" if it does not.

        Args:
            required: the method's arguments without a default, but for self.
            accepted: how many arguments it takes, with and without a default.
        """
        old = [name for name in required if name in OLD_ARGUMENTS and name not in self.passed]
        if not old and (self.is_open or len(required) <= len(self.passed) <= accepted):
            return ""
        with_what = f"with ({', '.join(self.passed)})" if self.passed else "without arguments"
        why = f"{version(TRAINER)}, which is installed here, calls it {with_what}: TypeError."
        if "dataloader_idx=0" in self.today and len(required) == len(self.passed) + 1:
            why += " dataloader_idx is passed only where there are several loaders."
        return why


@cache
def _called_by_lightning(owner: Any) -> frozenset[str]:
    """Return the names of the methods that Lightning calls on a class, and its user does not."""
    if not inspect.isclass(owner):  # no Lightning is installed
        return frozenset()
    parts = [each for each in owner.__mro__ if each.__name__.endswith(("Hooks", "Callback"))]
    names = {name for each in parts for name in vars(each) if not name.startswith("_")}
    return frozenset({*names, *_HOOKS_OF_MODULES} if parts else ())


@cache
def hook(kind: str, name: str) -> Hook | None:
    """Return a method that the installed Lightning calls on a class of this kind, or None."""
    owner = find(f"lightning.pytorch.{kind}")
    function = getattr(owner, name, None)
    if name not in _called_by_lightning(owner) or not inspect.isfunction(function):
        return None
    given = list(inspect.signature(function).parameters.values())
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    plain = [each for each in given[1:] if each.kind not in variable]
    if given[:1] == [] or given[0].name != "self" or (len(plain) < len(given) - 1 and not plain):
        return None  # `training_step(*args, **kwargs)` is whatever the user makes of it
    # It is passed where there are several loaders, and has a default for this reason.
    sometimes = [each for each in plain if each.default is not each.empty]
    sometimes = [each for each in sometimes if each.name == "dataloader_idx"]
    texts = [each.name if each not in sometimes else f"{each.name}=0" for each in plain]
    return Hook(
        kind=kind,
        name=name,
        passed=tuple(each.name for each in plain if each not in sometimes),
        today=f"def {name}({', '.join(['self', *texts])})",
        is_open=len(plain) < len(given) - 1,
    )


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
