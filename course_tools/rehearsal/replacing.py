"""Names of torch that are replaced while a rehearsal runs, and put back when it ends."""

import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple

MISSING = object()


class Replacement(NamedTuple):
    """One name, whose it is, and what stands there during the rehearsal."""

    owner: Any
    name: str
    value: Any


@contextlib.contextmanager
def replaced(names: Iterable[Replacement]) -> Iterator[list[Replacement]]:
    """Replace names, and put back exactly what stood there, whatever happens.

    Yields:
        What stood there before.
    """
    before: list[Replacement] = []
    known = set(sys.modules)
    try:
        for owner, name, value in names:
            before.append(Replacement(owner, name, vars(owner).get(name, MISSING)))
            setattr(owner, name, value)
        yield before
    finally:
        handed_on = {}
        for owner, name, value in reversed(before):
            if isinstance(owner, ModuleType) and value is not MISSING:
                handed_on[name, id(vars(owner)[name])] = value
            if value is MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
        _put_back_in_modules(handed_on, set(sys.modules) - known)


def _put_back_in_modules(handed_on: dict[tuple[str, int], Any], names: set[str]) -> None:
    """Put names back in modules that were imported meanwhile, and took them over."""
    for module in [sys.modules[name] for name in names]:
        for name, value in list(_names_in(module).items()):
            if (name, id(value)) in handed_on:
                setattr(module, name, handed_on[name, id(value)])


def _names_in(module: Any) -> Mapping[str, Any]:
    """Return what an entry of `sys.modules` defines; the entry is None for what may not load."""
    return getattr(module, "__dict__", {})


def everywhere(owner: ModuleType, values: Mapping[str, Any], family: str) -> Iterator[Replacement]:
    """Yield names of a module, and of each module of a family that took one over before."""
    originals = {name: vars(owner)[name] for name in values}
    for each, module in sys.modules.copy().items():
        if module is owner or each.startswith(family):
            names = _names_in(module)
            for name in originals.keys() & names.keys():
                if names[name] is originals[name]:
                    yield Replacement(module, name, values[name])
