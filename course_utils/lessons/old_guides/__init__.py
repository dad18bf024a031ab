"""Lesson parts: old_guides."""
