"""Old code: which arguments and calls are outdated, and what to write today."""

from typing import TYPE_CHECKING

from course_utils.lazy_names import lazy_names

if TYPE_CHECKING:
    from course_tools.old_code.explanation import explain as explain
    from course_tools.old_code.read_text import Unreadable as Unreadable
    from course_tools.old_code.trainer_arguments import CannotTranslate as CannotTranslate
    from course_tools.old_code.trainer_arguments import modernize as modernize

_HOMES = {
    "explain": "explanation",
    "Unreadable": "read_text",
    "modernize": "trainer_arguments",
    "CannotTranslate": "trainer_arguments",
}

__all__ = [*_HOMES]
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
