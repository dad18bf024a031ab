"""Tools of the accelerator course: why a GPU is missing, who is faster, and what a job would take.

Each tool is a folder that imports `course_utils` and no other tool. The names that lessons and
programs use most can be had from here, and are imported when they are first asked for.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # in place of typing's: the doctor starts beside a file called typing.py too
if TYPE_CHECKING:
    from typing import Any

_HOMES = {
    "compare_devices": "compare.comparison",
    "copy_rate": "compare.copy_speed",
    "TimedCall": "compare.time_together",
    "time_together": "compare.time_together",
    "diagnose": "doctor.diagnose",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
