"""A Python without SciPy and Matplotlib, as on many a node of a cluster: a launch needs neither.

torchmetrics, which Lightning imports, imports what it finds of them: a fifth of a launch's time.
"""

import sys
from importlib import metadata

HIDDEN = ("matplotlib", "scipy")
found = metadata.distribution


def distribution(name: str) -> metadata.Distribution:
    if name in HIDDEN:
        raise metadata.PackageNotFoundError(name)
    return found(name)


metadata.distribution = distribution
sys.modules.update(dict.fromkeys(HIDDEN))
