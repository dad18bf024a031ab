"""Packages that the tools need beside torch, and the error where they are missing."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, requires

PACKAGES = {"PIL": "pillow"}  # that have another name than their module


@contextmanager
def explain_missing_package() -> Iterator[None]:
    """Say how to install what an import inside the block lacks.

    Raises:
        ModuleNotFoundError: with the command, in place of the import's own.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "a package").partition(".")[0]
        message = f"This needs {name}, which is not installed: {install_command(name)}"
        raise ModuleNotFoundError(message, name=error.name) from None


def install_command(module: str) -> str:
    """Return the command that installs the package of a module, in a version that fits."""
    package = PACKAGES.get(module, module)
    try:
        lines = requires("accelerator-course") or []
    except PackageNotFoundError:  # the course runs from a bare checkout
        lines = []
    wanted = [line for line in lines if _package_name(line) == _package_name(package)]
    requirement = wanted[0].partition(";")[0].strip() if wanted else package
    return f'pip install "{requirement}"'


def _package_name(requirement: str) -> str:
    """Return the name that a requirement begins with, in the one spelling that registries use."""
    name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()
