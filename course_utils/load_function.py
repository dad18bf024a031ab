"""Load a function by name: "path/to/file.py:function" or "package.module:function"."""

import importlib
import re
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any


class NoSuchFunction(ValueError):
    """A name that leads to no function."""


def load_function(name: str) -> Callable[..., Any]:
    """Return a function of a file or of a module that can be imported.

    A file is loaded by its path, so it may be called `mlp-mnist.py` or `random.py`. It can import
    the modules beside it, as a script can. It is loaded once in a process.

    Args:
        name: "path/to/file.py:function" or "package.module:function".

    Raises:
        NoSuchFunction: the name has another form, or there is no such file, module or function.
        Exception: whatever the file or module raises when it is loaded.
    """
    home, function = split_name(name)
    module = _load_file(Path(home)) if home.endswith(".py") else _import(home)
    found = getattr(module, function, None)
    if not callable(found):
        raise NoSuchFunction(f"{home} defines no function {function!r}.")
    return found


def split_name(name: str) -> tuple[str, str]:
    """Return the file or module and the function of a name, without loading anything.

    Raises:
        NoSuchFunction: the name has another form, or there is no such file.
    """
    home, colon, function = name.rpartition(":")
    is_file = home.endswith(".py")
    if not colon or not function or not (is_file or re.fullmatch(r"\w+(\.\w+)*", home)):
        raise NoSuchFunction(
            f"{name!r} does not name a function. Write path/to/file.py:function or "
            f"package.module:function."
        )
    if is_file and not Path(home).is_file():
        raise NoSuchFunction(f"there is no file {home!r} in {Path.cwd()}.")
    return home, function


class _Beside(MetaPathFinder):
    """Finds the modules in a folder, before those that are installed.

    The folder does not stand first in `sys.path`, because processes that are spawned inherit that
    and would then take a file `lightning.py` in the folder for the library.
    """

    def __init__(self, folder: str):
        self.folder = folder

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Return where a module is, unless it is a part of a package or a folder without code."""
        spec = PathFinder.find_spec(name, [self.folder]) if path is None else None
        return spec if spec and spec.loader else None


def _load_file(path: Path) -> ModuleType:
    path = path.resolve()
    name = "file_" + re.sub(r"\W", "_", path.stem)
    loaded = sys.modules.get(name)
    if loaded and loaded.__file__ == str(path):
        return loaded
    folder = str(path.parent)
    if folder not in sys.path:
        sys.meta_path.insert(sys.meta_path.index(PathFinder), _Beside(folder))
        sys.path.append(folder)  # for folders without __init__.py
    spec = spec_from_file_location(name, path)
    assert spec and spec.loader  # the path ends in .py
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            raise NoSuchFunction(f"there is no module {name!r}: {error}.") from None
        raise  # the module is there, and imports another one that is missing
