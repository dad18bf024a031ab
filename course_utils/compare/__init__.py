"""The same work on several devices: what is measured, the results, and how they are shown.

The names below are imported when they are first asked for, since pictures and the panel need more
than torch.
"""

from importlib import import_module
from typing import Any

_NAMES = {
    "comparison": "WrongAnswer compare_devices cpu_first measure_roof",
    "measurement": "Measurement",
    "panel": "SpeedLab",
    "results": "Result machines_elsewhere recorded",
    "workloads": "CNN_STEP CNN_WITH_COPY COPY ELEMENTWISE PRODUCT RNN_STEP SUITE Workload",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
