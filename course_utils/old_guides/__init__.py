"""Old guides: which arguments and calls of a snippet are outdated, and what to write today."""

from course_utils.old_guides.old_trainer import CannotTranslate, Modern, Note, modernize
from course_utils.old_guides.snippets import explain_snippet

__all__ = ["CannotTranslate", "Modern", "Note", "explain_snippet", "modernize"]
