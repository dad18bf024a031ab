"""Let a block of imports believe that a package is not installed."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError


class _Hider:
    """Answers the import system for packages that are to stay out."""

    def __init__(self, names: tuple[str, ...]):
        self._names = names

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self._names:
            raise ModuleNotFoundError(f"{name} is kept out of this process", name=name)

    def find_distributions(self, context):
        if context.name in self._names:
            raise PackageNotFoundError(context.name)
        return ()


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Hide packages from whatever is imported, or asks whether they are there, in this block.

    Lightning imports matplotlib (through torchmetrics) and torch_xla wherever it finds them, which costs every
    process a third of a second and one and a half. After the block both can be imported as ever.

    Args:
        names: the packages.
    """
    hider = _Hider(names)
    sys.meta_path.insert(0, hider)
    try:
        yield
    finally:
        sys.meta_path.remove(hider)
