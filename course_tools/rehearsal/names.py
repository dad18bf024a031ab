"""Names of torch that are replaced while a rehearsal runs, and put back when it ends."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

MISSING = object()


class Name(NamedTuple):
    """One name, whose it is, and what stands there during the rehearsal."""

    owner: Any
    name: str
    value: Any


@contextlib.contextmanager
def replaced(names: Iterable[Name]) -> Iterator[list[Name]]:
    """Replace names, and put back exactly what stood there, whatever happens."""
    before: list[Name] = []
    try:
        for owner, name, value in names:
            before.append(Name(owner, name, vars(owner).get(name, MISSING)))
            setattr(owner, name, value)
        yield before
    finally:
        for owner, name, value in reversed(before):
            if value is MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
