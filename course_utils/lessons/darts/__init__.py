"""Lesson parts: darts."""
