"""What the installed packages have today: names, keywords and methods. Nothing but their own
modules is imported.
"""

import enum
import importlib
import importlib.metadata
import importlib.util
import inspect
import re
import warnings
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

# these are asked; of the others files are read
IMPORTED = ("torch", "lightning", "pytorch_lightning", "torchmetrics")
READ = ("torch_xla", "darts")
ROOTS = {*IMPORTED, *READ}
GONE, UNKNOWN = object(), object()
TRAINER = "lightning.pytorch.Trainer"
_HOME = re.compile(
    r"^lightning\.(pytorch\.)?((trainer|core|module)\.)*(?=(Trainer|Lightning(Data)?Module|Callback)\b)"
)
_ELSEWHERE: Any = (
    "torch.npu",
    "torch.hpu",
    "torch.mlu",
    "torch.musa",
    "torch.tpu",
    "torch.ops.",
    "torch.classes.",
)
# torch_xla's guides say pl, too
_ELSEWHERE += ("lightning.pytorch.MpDeviceLoader", "lightning.pytorch.ParallelLoader")
_NEW_HOMES = {
    "lightning.pytorch": (
        "callbacks",
        "strategies",
        "loggers",
        "plugins",
        "profilers",
        "utilities",
        "tuner",
        "",
    ),
    "torch": (
        "linalg",
        "fft",
        "special",
        "amp",
        "nn.functional",
        "nn",
        "nn.utils",
        "utils.data",
        "optim.lr_scheduler",
    ),
}


def today(name: str) -> str:
    """Return a name of Lightning under the package that this course trains with, and in the place
    that guides use.
    """
    return _HOME.sub(
        "lightning.pytorch.", re.sub(r"^pytorch_lightning\b", "lightning.pytorch", name)
    )


def is_gone(name: str) -> bool:
    """Say whether a full name of one of the packages is missing today. What cannot be found out is
    not gone.
    """
    root, *parts = today(name).split(".")
    is_private = "lightning" not in root and any(part.startswith("_") for part in parts)
    # other packages bring torch.npu and the like
    if is_private or "__" in name or name.startswith(_ELSEWHERE):
        return False
    return (
        _is_gone_from_files(root, tuple(parts))
        if root in READ
        else root in IMPORTED and find(name) is GONE
    )


def find(name: str) -> Any:
    """Return what a full name of an imported package stands for, `GONE`, or `UNKNOWN` where it
    cannot be found out.
    """
    # as Kaggle has it
    home = "lightning.pytorch" if importlib.util.find_spec("lightning") else "pytorch_lightning"
    root, *parts = today(name).replace("lightning.pytorch", home).split(".")
    thing = _module(root) if root in IMPORTED else UNKNOWN
    for part in parts if thing is not UNKNOWN else ():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of names such as torch.has_cuda
                thing = getattr(thing, part)
        except AttributeError:
            if not (inspect.ismodule(thing) or inspect.isclass(thing)) or isinstance(
                thing, enum.EnumMeta
            ):
                return UNKNOWN
            path = f"{thing.__name__}.{part}"
            if (
                inspect.isclass(thing)
                or not hasattr(thing, "__path__")
                or importlib.util.find_spec(path) is None
            ):
                return GONE
            thing = _module(path)
        except Exception:  # a lazy module whose packages are not here
            return UNKNOWN
    return thing


@cache
def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except Exception:  # it needs a package or a device that is not here
        return UNKNOWN


@cache
def _is_gone_from_files(root: str, parts: tuple[str, ...]) -> bool:
    """Look a name up in the files of a package, because importing it takes seconds or changes the
    process.
    """
    spec: Any = importlib.util.find_spec(root)
    for part in parts if spec else ():
        inside = PathFinder.find_spec(part, spec.submodule_search_locations or [])
        if inside is None:
            file = Path(spec.origin or "")
            text = file.read_text(encoding="utf-8") if file.suffix == ".py" else ""
            is_compiled = file.suffix not in (".py", "")
            return not is_compiled and not re.search(rf"\b{part}\b|import \*|def __getattr__", text)
        spec = inside
    return False


def new_home(name: str) -> str:
    """Return where something of the same name is today, or ""."""
    leaf, full = name.rpartition(".")[2], today(name)
    root = next((each for each in _NEW_HOMES if full.startswith(f"{each}.")), "")
    homes = (f"{root}.{each}".rstrip(".") for each in _NEW_HOMES.get(root, ()) if leaf[:1] != "_")
    return next((f"{home}.{leaf}" for home in homes if hasattr(_module(home), leaf)), "")


@cache
def version(name: str) -> str:
    """Return the package of a name with the version that is installed."""
    package = name.partition(".")[0].replace("_lightning", "-lightning")
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return package


@cache
def parameters(name: str) -> Any:
    """Return the parameters of a function or class by name, or None where they cannot be known or
    are open.
    """
    thing = find(name)
    if name.startswith("torch.jit."):
        return None
    try:
        found = inspect.signature(thing).parameters
    except (ValueError, TypeError):
        return None
    return None if any(each.kind is each.VAR_KEYWORD for each in found.values()) else found


@cache
def trainer_attributes() -> frozenset[str]:
    """Return every name that a Trainer has, those that it is given while it is made included."""
    trainer = find(TRAINER)
    folder = Path(inspect.getfile(trainer)).parent
    texts = "\n".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
    return frozenset(dir(trainer)) | frozenset(re.findall(r"(?:self|trainer)\.(\w+)", texts))


def misfit(base: str, method: str, least: float, most: float) -> tuple[str, str] | None:
    """Return the heading of one of Lightning's methods and why one that takes `least` to `most`
    arguments fails.
    """
    known = find(f"{base}.{method}")
    if not inspect.isfunction(known):
        return None
    every = inspect.signature(known).parameters.values()
    given = [
        each.replace(annotation=each.empty)
        for each in every
        if each.kind is each.POSITIONAL_OR_KEYWORD
    ]
    always = sum(each.default is each.empty for each in given)
    few = "fewer arguments" * (least > len(given)) or "more arguments" * (most < always)
    if not few and least == len(given) > always and given[-1].name == "dataloader_idx":
        few = "fewer arguments where there is one loader"
    # that is called with the loss alone
    if not few or (len(given) < len(every) and method != "backward"):
        return None
    return f"def {method}({', '.join(map(str, given))})", f"{version(base)} calls it with {few}."


def lacking(name: str, positions: int, given: set[str]) -> list[str]:
    """Return the arguments without which a metric or a callback cannot be made or called today, and
    are not given.
    """
    thing: Any = (
        find(name) if name.startswith(("torchmetrics.", "lightning.pytorch.callbacks.")) else None
    )
    made = thing.__init__ if inspect.isclass(thing) else thing  # an exception has no signature
    every = inspect.signature(thing).parameters.values() if inspect.isfunction(made) else ()
    after = [each for each in every if each.kind is each.POSITIONAL_OR_KEYWORD][positions:]
    return [str(each) for each in after if each.default is each.empty and each.name not in given]
