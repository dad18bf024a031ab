"""Find out why an accelerator is missing or unusable, and the fix: `python -m course_tools.doctor`.

It reads files and variables first, then tries a kernel on every device in child processes with a
time limit, so that nothing here can hang or die with a driver. It starts without torch, since torch
may be what is broken, and beside files that break other programs: see `shadows`.
"""

from course_utils.lazy_names import lazy_names

TYPE_CHECKING = False  # in place of typing's, as in `lazy_names`
if TYPE_CHECKING:
    from course_tools.doctor.examine import diagnose as diagnose

_HOMES = {
    "diagnose": "examine",
}

__all__ = [*_HOMES]
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
