"""Packages that the tools need beside torch, and the error where they are missing."""

from collections.abc import Iterator
from contextlib import contextmanager

INSTALL = "pip install 'accelerator-course[lessons]'"


@contextmanager
def lessons_extra() -> Iterator[None]:
    """Say how to install what an import inside the block lacks.

    Raises:
        ModuleNotFoundError: with the command, in place of the import's own.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "a package").partition(".")[0]
        message = f"This needs {name}, which is not installed: {INSTALL}"
        raise ModuleNotFoundError(message, name=error.name) from None
