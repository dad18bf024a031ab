"""Public names of a package that are imported when they are first asked for (PEP 562)."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # in place of typing's: the doctor starts beside a file called typing.py too
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def lazy_names(
    package: str, homes: dict[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package.

    Args:
        package: its `__name__`.
        homes: for each public name, the module inside the package that defines it.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    def listed() -> list[str]:
        return sorted({*vars(import_module(package)), *homes})

    return get, listed
