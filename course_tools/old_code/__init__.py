"""Old code: which arguments and calls are outdated, and what to write today."""

from course_utils.lazy_names import lazy_names

_HOMES = {
    "explain": "explanation",
    "Unreadable": "read_text",
    "modernize": "trainer_arguments",
    "CannotTranslate": "trainer_arguments",
}

__all__ = [*_HOMES]
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
