"""The networks of others that the estimate is compared with."""

import importlib
import sys
from pathlib import Path

import pytest

# Not in the environment itself: Lightning imports torchvision in every process that can
# (tools/install.py).
NETWORKS = Path(sys.prefix) / "networks"


def networks_of(package: str):
    """Import a package from the folder of networks, or from the environment, and leave the search
    path as it was.
    """
    sys.path.append(str(NETWORKS))
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as missing:
        pytest.skip(f"{missing} (tools/install.py installs it)")
    finally:
        sys.path.remove(str(NETWORKS))


@pytest.fixture(scope="session")
def torchvision():
    return networks_of("torchvision")


@pytest.fixture(scope="session")
def timm():
    return networks_of("timm")


@pytest.fixture(scope="module")
def transformers():
    """Give transformers, which imports its parts when they are first asked for."""
    sys.path.append(str(NETWORKS))
    try:
        yield pytest.importorskip("transformers", reason="tools/install.py installs it")
    finally:
        sys.path.remove(str(NETWORKS))
