"""Old guides: which arguments and calls of old code are outdated, and what to write today."""

from course_utils.old_code.explain import Explanation, Unreadable, explain
from course_utils.old_code.old_trainer import CannotTranslate, Modern, Note, modernize

__all__ = ["CannotTranslate", "Explanation", "Modern", "Note", "Unreadable", "explain", "modernize"]
