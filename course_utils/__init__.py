"""Helpers of the accelerator course: find a device, move data, time honestly, and launch.

A public name is imported when it is first asked for, so `import course_utils` costs next to
nothing, and works where torch does not start.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # in place of typing's: the doctor starts beside a file called typing.py too
if TYPE_CHECKING:
    from typing import Any

_HOMES = {
    "Device": "devices",
    "find_devices": "devices",
    "pick_device": "devices",
    "wait_for": "devices",
    "to_device": "transfers",
    "Timing": "timing",
    "time_call": "timing",
    "run_lesson": "launch.parent",
    "LaunchError": "launch.request",
    "RunError": "launch.parent",
}

__all__ = [*_HOMES]
__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
